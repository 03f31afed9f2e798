"""What the parts of the webhook's installation are called."""

from __future__ import annotations

SYSTEM = "posse-system"
SERVICE = "posse-admission"
ACCOUNT = "posse-admission"
KEPT_IN = "posse-admission-certificates"
"""The Secret that holds the authority and the certificate."""
CONFIGURATION = "posse-admission"
