"""Values of cluster size recommendations: node groups, settings, what is known, what is remembered, the answer."""
