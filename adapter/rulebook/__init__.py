"""The rule language of prometheus-adapter: read, checked, planned, rendered. Pure: no network, no clock, no state."""
