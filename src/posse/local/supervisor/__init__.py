"""The embedded cluster as processes: its home, its supervision, up, down and status.

`starting.up`, `stopping.down` and `reporting.status` are the verbs; `services.run` is the whole of
each process. Nothing is imported here: every service pays only for what it uses.
"""
