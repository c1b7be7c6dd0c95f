"""The name of the program whose commands these are."""

from __future__ import annotations

PROGRAM = "kubectl-tidewatch"
