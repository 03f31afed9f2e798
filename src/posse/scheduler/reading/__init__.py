"""Objects of the API to facts of the engine, one small module per kind.

A function that reads an object is pure: it answers with facts, or raises Unreadable. Few keep what
is known: `reader` keeps the view in step with the caches, with `roster` for pods, `ground` for
nodes, `tenancy` for queues and `storage` for claims; a gang is a `muster`.
"""
