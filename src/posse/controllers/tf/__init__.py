"""TFJob of kubeflow.org: v1, v1beta2 and v1beta1.

kind.py        what is its own; what all kinds of replicas share is in controllers/jobs/replicas
cluster.py     TF_CONFIG: who is who, and where
success.py     when a job has succeeded, and which failures it outlives
"""
