"""The output resize: the common parts of kinds that size containers."""
