"""What fields the built-in kinds have, one struct a line, in the notation of `schemas.notation`."""
