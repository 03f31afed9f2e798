"""What the controllers of all job kinds share: conditions, labels, groups, clean-up, actions."""
