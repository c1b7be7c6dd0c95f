"""What all charts share: axes that one outlier does not flatten, labels that do not overlap."""
