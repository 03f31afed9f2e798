"""Objects of the API to facts of the engine, one small module per kind.

Every function here is pure and answers with facts or raises Unreadable; `reader` keeps the view in
step with the caches.
"""
