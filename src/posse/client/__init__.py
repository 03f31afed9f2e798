"""The Python API that the command line sits on. Public names come from `posse` alone."""
