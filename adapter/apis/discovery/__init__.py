"""Groups, versions and lists of metrics: what there is to ask for."""
