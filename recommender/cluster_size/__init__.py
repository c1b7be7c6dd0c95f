"""The types for node group plugins, under stable names that other packages import."""
