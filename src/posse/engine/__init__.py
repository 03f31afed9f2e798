"""Pure decisions: facts in, a plan out.

    facts -> View -> cycle(view, policy, now) -> Start | Evict | Keep | Release | Wait

The view is changed by events and by the decisions themselves; nothing here waits, writes or asks
for the time. `cycle.py` is the place to start reading.
"""
