"""Why a metric has a value, or has none."""
