"""From samples to windows: arithmetic on grids, statistics, the analyser of bad metrics, estimates. Pure."""
