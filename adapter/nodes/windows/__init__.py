"""Turns samples into windows: arithmetic on grids, statistics, the analyser of bad metrics, estimates. Pure."""
