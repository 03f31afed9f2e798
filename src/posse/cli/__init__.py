"""The command line: `posse`, and the same program under the name `arena`."""
