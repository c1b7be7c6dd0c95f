"""Estimates how many nodes of one group a set of pods needs: equivalence groups, binpacking, a lower bound."""
