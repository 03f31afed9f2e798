"""Posse: gang scheduling for distributed training. A posse rides together, or not at all."""

__version__ = "0.1.0"
