"""The policies that score nodes from 0 to 100, each a pure function over columns of nodes; and the mean of several."""
