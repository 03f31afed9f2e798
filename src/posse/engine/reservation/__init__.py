"""The first in line is not overtaken for ever, and is told when it starts."""
