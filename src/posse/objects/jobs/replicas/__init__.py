"""Jobs of numbered replicas in a few roles: what the user asked for, and whether that can be."""
