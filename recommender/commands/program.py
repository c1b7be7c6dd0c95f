"""The program's name, and the prefix of its metrics."""

from __future__ import annotations

PROGRAM = "tidewatch-recommender"
METRICS_PREFIX = "tidewatch_recommender"
