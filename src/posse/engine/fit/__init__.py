"""Which nodes a pod may use, and how many seats each has for it."""
