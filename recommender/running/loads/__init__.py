"""The load of predictive recommendations: what it is, what it was, and what models make of it."""
