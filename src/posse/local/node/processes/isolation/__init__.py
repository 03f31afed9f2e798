"""How far pods are kept apart from each other and from this machine."""
