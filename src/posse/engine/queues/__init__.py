"""Shares of the cluster: what each queue uses, may use and deserves, and whose turn it is."""
