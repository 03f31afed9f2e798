"""What is particular to a kind when its objects are written."""
