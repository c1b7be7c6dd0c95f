"""The common parts of all charts: axes that one outlier does not flatten, labels that do not overlap."""
