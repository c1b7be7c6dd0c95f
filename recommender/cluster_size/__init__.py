"""The types for plugins of node groups, under stable names that other packages import."""
