"""The output `resize`: what kinds that size containers have in common."""
