"""The policies that read requests and allocatable amounts alone."""
