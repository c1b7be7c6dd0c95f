"""Replicas that rotate their certificate."""

from __future__ import annotations

from datetime import timedelta

from tests.adapter.metrics.identity.certificates.keeping_harness import LIFE

SETTLED = timedelta(minutes=2)
TO_ROTATION = LIFE * 2 / 3 + timedelta(minutes=1)
