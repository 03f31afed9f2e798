"""What is said at the door of the API server, before an object is stored.

A day without anybody at the door loses nothing: whatever is refused here is refused later on by
the controllers or the scheduler, too. Here it is said to the person who wrote it, while they look.

review.py            a request in, an answer out: pure but for what it reads
jobs.py, groups.py, queues.py, pods.py    the kinds that are looked at
lookups.py           what they read of other objects
wire.py, patching.py the protocol: AdmissionReview v1 and JSON Patch
app.py, serving.py   the webhook, over TLS
certificates.py, keeping.py    its own authority, kept in a Secret by all replicas together
installation/       the objects that put it at the door
program.py           `posse admission`
"""
