"""Pods as processes of this machine.

The agent decides what runs; a small program of its own, the shim, runs each attempt of a container.
Nothing that runs depends on the agent's life, and nothing that has ended is forgotten with it.
"""
