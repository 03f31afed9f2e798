"""MPIJob of kubeflow.org/v2beta1: observe, decide, perform.

What the user asked for, and whether that can be, is read in objects/jobs/mpi.

controller.py    which changes concern a job, and what the caches show of it
observing.py     what is there, and whose it is
deciding.py      what to do about it, in numbered steps: pure
gang.py, members.py, status.py       the parts of a decision
hosts.py, ssh.py, templates.py       the objects that a job consists of
"""
