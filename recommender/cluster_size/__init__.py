"""The types for plugins of node groups, under names that other packages import and that do not move."""
