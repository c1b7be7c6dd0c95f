"""Health checks as in kube-apiserver: named checks behind `/livez`, `/readyz` and `/healthz`.

Checks run on every probe, so they must answer from memory. The reason for a failure is shown to every caller, so it
must not contain secrets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qs

READY_WITHOUT_LISTS_SECONDS: Final = 10.0
"""Readiness waits no longer than this for lists, since metrics and the page must not depend on the API server."""

Probe: TypeAlias = "Callable[[], str | None]"
"""Returns None if the check passes, or else the reason in one line. A probe never waits and never raises."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One named condition."""

    name: str
    probe: Probe


_LIVE = (HealthCheck("ping", lambda: None),)
"""The check of `/livez`: a process that answers at all is live."""


class Health:
    """The checks of a process. The process is live as long as it answers; further checks decide whether it is ready."""

    def __init__(self) -> None:
        self._ready: tuple[HealthCheck, ...] = ()

    def add_ready(self, name: str, probe: Probe) -> None:
        """Add a condition that must hold before the process receives requests."""
        self._ready = (*self._ready, HealthCheck(name, probe))

    def add_first_lists(self, have_been_tried: Callable[[], bool]) -> None:
        """Add the condition that the first lists of objects have been tried; it holds after ten seconds in any case."""
        started = time.monotonic()

        def probe() -> str | None:
            if have_been_tried() or time.monotonic() - started >= READY_WITHOUT_LISTS_SECONDS:
                return None
            return "the first lists of objects have not arrived yet"

        self.add_ready("objects", probe)

    def answer(self, path: str, query: str) -> tuple[int, str] | None:
        """Return status and text for a health path (`/livez`, `/readyz/NAME`, `/healthz?verbose`); None for others."""
        root = path.split("/", 2)[1] if path.startswith("/") else ""
        if root == "livez":
            return render_health(_LIVE, path, query)
        if root in {"readyz", "healthz"}:
            return render_health((*_LIVE, *self._ready), path, query)
        return None


def render_health(checks: Sequence[HealthCheck], path: str, query: str) -> tuple[int, str]:
    """Return HTTP status and text, in kube-apiserver's format, for `/ROOT` or `/ROOT/CHECK`.

    `?verbose` lists the checks even if all pass; `?exclude=NAME` skips a check.
    """
    root, _, single = path.strip("/").partition("/")
    options = parse_qs(query, keep_blank_values=True)
    if single:
        return _single(checks, single)
    excluded = set(options.get("exclude", ()))
    lines = []
    well = True
    for check in checks:
        if check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok")
            continue
        reason = check.probe()
        well = well and reason is None
        lines.append(f"[+]{check.name} ok" if reason is None else f"[-]{check.name} failed: {reason}")
    unknown = sorted(excluded - {check.name for check in checks})
    if unknown:
        names = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if well and "verbose" not in options:
        return 200, "ok"
    lines.append(f"{root} check {'passed' if well else 'failed'}")
    return (200 if well else 500), "\n".join(lines) + "\n"


def _single(checks: Sequence[HealthCheck], name: str) -> tuple[int, str]:
    for check in checks:
        if check.name == name:
            reason = check.probe()
            return (200, "ok") if reason is None else (500, f"internal server error: {reason}\n")
    return 404, f"no health check is named {name!r}; there are {', '.join(check.name for check in checks)}\n"
