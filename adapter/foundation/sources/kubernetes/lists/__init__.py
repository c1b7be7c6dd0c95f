"""Lists of objects: their query, their decoding in slices, and their checks."""
