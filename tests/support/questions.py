"""How often each HPA received its metric, counted in the audit log of the API server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.control_plane_audit import requests_of_hpas

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tests.e2e.controlplane.audit import AuditEvent


def answers_by_question(events: Sequence[AuditEvent], since: datetime, until: datetime) -> Counter[tuple[str, str]]:
    """Count good answers by namespace and query string, which differ for each HPA."""
    good = (event for event in requests_of_hpas(events, since, until) if event.code == 200)
    return Counter((event.namespace, event.uri.partition("?")[2]) for event in good)
