"""The scheduler as a service: objects in, the engine's decisions, writes out.

    caches -> inbox -> reading -> View -> cycle -> committing -> outcomes -> inbox
                                            |
                                            +----> statuses (phases, conditions, events)

`program` waits to lead; `term` is one stay in office, listed afresh and dropped whole; `fencing`
keeps every write behind the lease.
"""
