"""Recommends machine shapes for node groups, by packing the pods of peak times on machines of a catalogue."""
