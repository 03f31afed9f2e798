"""Structural schemas: which fields an object may have, what they hold, and what they default to."""
