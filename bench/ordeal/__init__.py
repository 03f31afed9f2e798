"""A cluster of real processes under load, whose services are killed without warning.

Every client keeps a ledger of what was acknowledged to it. Afterwards the cluster must be exactly
what the ledgers say: nothing lost, nothing invented, every gang whole or wholly waiting.
"""
