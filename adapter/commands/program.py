"""The name of the program to which these commands belong."""

from __future__ import annotations

PROGRAM = "tidewatch-adapter"
