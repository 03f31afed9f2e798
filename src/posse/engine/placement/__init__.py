"""A gang's turn: its whole minimum, or nothing."""
