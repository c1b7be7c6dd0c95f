"""One observation of the fleet, for the view, the plot and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Moment:
    """The fleet and its clients at one time of the day."""

    seconds: float
    """Seconds since the beginning of the day."""
    wanted: int
    """Connections that people want open."""
    open: int
    """Connections that are open, by the clients' count."""
    attempted: int
    refused: int
    dropped: int
    lost: int
    replicas: int
    """Pods that exist, starting ones included."""
    serving: int
    """Pods that have started."""
    limit: int
    """Limit on the connections of one pod."""
    over: bool
    """Whether the day has ended."""

    @property
    def capacity(self) -> int:
        """Limit on the connections of all started pods."""
        return self.serving * self.limit

    @property
    def refused_ratio(self) -> float:
        """Refused share of all attempts so far."""
        return self.refused / self.attempted if self.attempted else 0.0


def moment_of(state: dict[str, Any]) -> Moment | None:
    """Return the observation in the fleet's state; None while the day has not begun for the clients."""
    clients, pods = state["clients"], state["pods"]
    if not clients or not clients["has_begun"]:
        return None
    return Moment(
        seconds=clients["seconds"],
        wanted=clients["wanted"],
        open=clients["open"],
        attempted=clients["attempted"],
        refused=clients["refused"],
        dropped=clients["dropped"],
        lost=clients["lost"],
        replicas=len(pods),
        serving=sum(pod["port"] is not None for pod in pods),
        limit=state["limit"],
        over=clients["over"],
    )
