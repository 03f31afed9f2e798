"""Gangs that have begun and miss something."""
