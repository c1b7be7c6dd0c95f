"""The scores for a request, as the scheduler gets them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from adapter.nodes.model.arrays import rows_in
from adapter.nodes.model.scheduling_settings import DEFAULT_ARGS, PolicyName, PolicySettings, SchedulingSettings
from adapter.nodes.scores.table import score_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.nodes.model.columns import PendingPod
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

_log: Final = logging.getLogger(__name__)


class UnknownPolicyError(LookupError):
    """This program has no such policy; the message lists the policies that it has."""


def policy_named(name: str, settings: SchedulingSettings) -> PolicySettings:
    """Return a policy with its arguments from the configuration, or the default ones. Raises UnknownPolicyError."""
    try:
        wanted = PolicyName(name)
    except ValueError as e:
        there_are = ", ".join(PolicyName)
        raise UnknownPolicyError(f"there is no policy {name[:60]!r}: use one of {there_are}") from e
    for policy in settings.policies:
        if policy.name is wanted:
            return replace(policy, weight=1)
    return PolicySettings(wanted, 1, DEFAULT_ARGS[wanted])


class Prioritizer:
    """Scores the nodes of requests by a set of policies. Safe to use from any number of threads."""

    def __init__(self, policies: Sequence[PolicySettings]) -> None:
        self._policies = tuple(policies)
        self._names = ", ".join(policy.name for policy in policies)
        self._state = StateLog(_log)

    def priorities(self, snapshot: NodesSnapshot, pod: PendingPod, names: Sequence[str]) -> list[int]:
        """Return a priority of 0 to 10 for each name; if all scores are equal, log once that they have no influence."""
        scores = score_request(self._policies, pod, snapshot, rows_in(snapshot.columns.index, names))
        if scores.without_influence:
            self._state.failed(
                snapshot.basis,
                f"the scores of {self._names} were the same for all nodes of a request: they had no influence on where "
                "the pod went; GET /scores shows why",
                level=logging.WARNING,
                basis=snapshot.basis,
            )
        priorities: list[int] = scores.priorities.tolist()
        return priorities
