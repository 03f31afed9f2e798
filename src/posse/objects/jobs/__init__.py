"""Training jobs as they are read: every default chosen, every name derived, every mistake found.

Whoever meets a job reads it here, so that what is refused at the door is what would have been
refused later on, in the same words.

mpi/           MPIJob
replicas/      jobs of numbered replicas in a few roles; a kind of them is a declaration
tf/            TFJob, declared
parts.py, templates.py, policies.py, queues.py    what they share
wrongs.py      how a mistake is worded
"""
