"""Others end so that a gang can start, only if it then does."""
