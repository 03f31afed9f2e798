"""The node agent: what a kubelet does, for one machine or for many simulated ones."""
