"""TFJob of kubeflow.org: v1, v1beta2 and v1beta1."""
