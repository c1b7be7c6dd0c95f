"""Rules of MetricRule objects: one rule each, confined to the namespace of the object (pure)."""
