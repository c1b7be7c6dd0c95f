"""The services of the APIs in one record, which the code that answers requests receives as a whole.

Tests of the APIs implement `RequestAuthorizer` with made-up callers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from adapter.metrics.apis.compatibility import OURS, Compatibility

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.web.http import Request
    from adapter.metrics.apis.apis_telemetry import Telemetry
    from adapter.metrics.apis.provider import MetricsProvider
    from adapter.metrics.identity.attributes import Attributes
    from adapter.metrics.identity.callers import Caller, Peer


class RequestAuthorizer(Protocol):
    """Authenticates callers and authorizes what they ask for. `AccessControl` implements it."""

    def check(self, request: Request) -> Caller:
        """Return the caller of a request that the caller is allowed to make. Raises IdentityError."""

    def identify(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        """Return the caller, who is not authorized yet. Raises IdentityError."""

    def authorize_unrouted(self, caller: Caller, attributes: Attributes) -> None:
        """Raise IdentityError unless the caller is allowed to use a path that kube-apiserver does not pass on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """The services with which the APIs answer requests."""

    authorizer: RequestAuthorizer
    provider: MetricsProvider
    resolve: ResolveResource
    """Returns a kind of objects by its group and name."""
    health: Callable[[str, str], tuple[int, str] | None]
    """Returns the HTTP status and text for the path and raw query of a health check; None if there is no such check."""
    metrics: Callable[[], bytes]
    """Returns the metrics of this process in Prometheus's text format."""
    telemetry: Telemetry
    version: str
    explain_command: str
    """The command that explains a metric, to be completed with its arguments in error messages."""
    empty_is_error: bool = False
    """Whether an answer without values is a 404 (`--on-no-data=error`)."""
    compatibility: Compatibility = OURS
    """The form of answers where that of prometheus-adapter is as safe as ours (`--compatibility`)."""
    wall: Callable[[], float] = time.time
    """Returns Unix seconds, from which the age of answers is computed."""
    timer: Callable[[], float] = time.perf_counter
    """Returns seconds since an arbitrary moment, to measure the duration of requests."""
