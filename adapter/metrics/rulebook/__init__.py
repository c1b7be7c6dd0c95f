"""The rule language of prometheus-adapter: parsing, checks, query plans, rendering (pure: no network or clock)."""
