"""The load of targets as an input of decisions."""
