"""Kubernetes objects as data: identities, structs, quantities, defaults, validation, CRD schemas.

Nothing here talks to anybody.
"""
