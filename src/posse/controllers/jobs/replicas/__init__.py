"""Jobs of numbered replicas in a few roles, each with a Service of its own.

A kind is a declaration (declaring.py); everything here is the same for all of them. What the user
asked for, and whether that can be, is read in objects/jobs/replicas.

controller.py    which changes concern a job, and what the caches show of it
observing.py     what is there, and whose it is
deciding.py      what to do about it, in numbered steps: pure
judging.py, restarting.py            what the end of a pod means, and how often one may come back
gang.py, members.py, status.py       the parts of a decision
templates.py                         the objects that a job consists of
"""
