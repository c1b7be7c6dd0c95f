"""How many nodes of one group a set of pods needs: equivalence groups, binpacking, limits and a lower bound."""
