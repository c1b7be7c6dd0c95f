"""Which machine shapes node groups should have: candidates from a catalogue, packed with the pods of peak hours."""
