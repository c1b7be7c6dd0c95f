"""The policies that read only requests and allocatable amounts."""
