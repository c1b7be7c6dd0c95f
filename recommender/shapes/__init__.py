"""Machine shapes that node groups could have: candidates from a catalogue, packed with the pods of peak hours."""
