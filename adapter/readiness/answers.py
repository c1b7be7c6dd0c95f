"""The paths of the sidecar: the probe, its liveness, and its own metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.service.server.plain import PlainAnswer

if TYPE_CHECKING:
    from adapter.readiness.board import ReadinessBoard

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def sidecar_answer(board: ReadinessBoard, path: str) -> PlainAnswer:
    """Return the answer to a path; every path but `/livez` and `/metrics` is the readiness probe."""
    if path == "/livez":
        return PlainAnswer(200, b"ok\n")
    if path == "/metrics":
        return PlainAnswer(200, own_metrics(board).encode(), _METRICS_TYPE)
    verdict = board.verdict()
    return PlainAnswer(200 if verdict.is_ready else 503, f"{verdict.reason}\n".encode())


def own_metrics(board: ReadinessBoard) -> str:
    """Return the sidecar's metrics in Prometheus's text format; an unknown number of connections is left out."""
    verdict, limit = board.verdict(), board.rules.limit
    lines = [
        *_head("tidewatch_readiness_ready", "gauge", "1 if the probe says ready, otherwise 0."),
        f"tidewatch_readiness_ready {int(verdict.is_ready)}",
        *_head("tidewatch_readiness_connections", "gauge", "The value behind that; absent while it is unknown."),
        *([] if verdict.connections is None else [f"tidewatch_readiness_connections {verdict.connections!r}"]),
        *_head("tidewatch_readiness_limit", "gauge", "Connections at which the pod is not ready."),
        f"tidewatch_readiness_limit {limit.full_at}",
        *_head("tidewatch_readiness_resume_below", "gauge", "Connections below which it is ready again."),
        f"tidewatch_readiness_resume_below {limit.resume_below!r}",
        *_head("tidewatch_readiness_reads_total", "counter", "Reads of the application's metric, by result."),
        *(f'tidewatch_readiness_reads_total{{result="{name}"}} {count}' for name, count in board.reads().items()),
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"
