"""What answers are like where prometheus-adapter's differ and one is as safe as the other (pure).

Two values of one type: ours, and what `--compatibility=prometheus-adapter` asks for. Nothing that could scale a
workload wrongly is among it: NaN as 0, the last of several samples, or infinity as a number are not to be had back.
What either choice does is in docs/migration-from-prometheus-adapter.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.objects.quantities import quantity_cut_in_binary, quantity_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.apis.status import ApiError
    from adapter.objects.resources import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """How values and errors are put."""

    quantity: Callable[[float], str] = quantity_of
    """A finite value as a quantity."""
    core_api_version: str = "v1"
    """`apiVersion` of described objects of the core group."""
    states_moment_of_answer: bool = False
    """Whether custom metrics bear the moment of the answer, in place of that of the query's evaluation."""
    states_former_errors: bool = False
    """Whether errors have prometheus-adapter's code and words, where it has some for them."""

    def api_version(self, resource: Resource) -> str:
        """Return the `apiVersion` of described objects of a kind."""
        return resource.api_version if resource.group else self.core_api_version

    def moment(self, evaluated_at: float, now: float) -> float:
        """Return the moment that custom metrics state, of these in unix seconds."""
        return now if self.states_moment_of_answer else evaluated_at

    def error(self, error: ApiError) -> ApiError:
        """Return the error to tell."""
        return error.former or error if self.states_former_errors else error


OURS = Compatibility()
PROMETHEUS_ADAPTER = Compatibility(
    quantity=quantity_cut_in_binary, core_api_version="/v1", states_moment_of_answer=True, states_former_errors=True
)
