"""The program that runs one attempt of one container, beside the agent and outliving it.

It loads the standard library and the few files of this directory, nothing else: there is one shim
per running container, and each must start in milliseconds and stay small.
"""
