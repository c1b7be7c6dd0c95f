"""`doctor` checks whether kube-apiserver answers, and whether its clock agrees with this machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.reports.clocks import compared, time_of
from adapter.foundation.reports.cluster import unanswered
from adapter.foundation.reports.lines import Line, ok
from adapter.foundation.sources.kubernetes.errors import KubernetesError, fault_of
from adapter.foundation.sources.prometheus.queries.clocks import MOST_CLOCK_DIFFERENCE_SECONDS

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.writing import ObjectClient


def look_at_apiserver(client: ObjectClient) -> tuple[Line, ...]:
    """Ask kube-apiserver for its version and its time."""
    versions: list[str] = []

    def shown() -> float | None:
        reply = client.get("/version")
        versions.append(str(reply.document.get("gitVersion", "unknown")))
        return time_of(reply.date)

    try:
        clock = compared("kube-apiserver", shown, MOST_CLOCK_DIFFERENCE_SECONDS)
    except KubernetesError as e:
        return (unanswered(str(e), fault_of(e)),)
    return ok("kube-apiserver", f"it answers, version {versions[0]}"), clock
