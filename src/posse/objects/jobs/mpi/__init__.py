"""MPIJob of kubeflow.org/v2beta1: what the user asked for, and whether that can be."""
