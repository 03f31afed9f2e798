"""From what a user asks for to the objects that ask the cluster for it. Objects, never text."""
