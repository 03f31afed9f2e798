"""The whole system in one event loop, on virtual time."""
