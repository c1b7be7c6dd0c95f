"""The name of the program that has these commands."""

from __future__ import annotations

PROGRAM = "kubectl-tidewatch"
