"""Why a gang waits, in words."""
