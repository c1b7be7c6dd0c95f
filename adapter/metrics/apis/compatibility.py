"""Describes the form of answers where prometheus-adapter's form differs and is equally safe (pure).

There are two values of one type: ours, and the one for `--compatibility=prometheus-adapter`. Neither contains anything
that could scale a workload wrongly: NaN as 0, the last of several samples, and infinity as a number are never returned.
The choices are described in docs/migration-from-prometheus-adapter.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.foundation.objects.quantities import quantity_cut_in_binary, quantity_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import Resource
    from adapter.metrics.apis.status import ApiError


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """How values and errors are stated."""

    quantity: Callable[[float], str] = quantity_of
    """Returns a finite value as a quantity."""
    core_api_version: str = "v1"
    """The `apiVersion` of described objects in the core group."""
    states_moment_of_answer: bool = False
    """Whether custom metrics state the time of the answer instead of the time of the query's evaluation."""
    states_former_errors: bool = False
    """Whether errors have the status and message of prometheus-adapter, if it has one."""

    def api_version(self, resource: Resource) -> str:
        """Return the `apiVersion` of described objects of a kind."""
        return resource.api_version if resource.group else self.core_api_version

    def moment(self, evaluated_at: float, now: float) -> float:
        """Return the timestamp of custom metrics in Unix seconds: one of the two arguments."""
        return now if self.states_moment_of_answer else evaluated_at

    def error(self, error: ApiError) -> ApiError:
        """Return the error to answer with."""
        return error.former or error if self.states_former_errors else error


OURS = Compatibility()
PROMETHEUS_ADAPTER = Compatibility(
    quantity=quantity_cut_in_binary, core_api_version="/v1", states_moment_of_answer=True, states_former_errors=True
)
