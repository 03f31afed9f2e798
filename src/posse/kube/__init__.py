"""Kubernetes over HTTP: config, auth, REST, list+watch, cache, leases, events, streams."""
