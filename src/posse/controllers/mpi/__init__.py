"""MPIJob of kubeflow.org/v2beta1: observe, decide, perform.

controller.py   what is there, from the caches
deciding.py     what to do about it: pure
spec.py, validating.py, hosts.py, ssh.py, templates.py, status.py   the parts of the decision
"""
