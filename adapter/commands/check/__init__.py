"""The command `check`, which reports errors in rule files, and what the rules would serve."""
