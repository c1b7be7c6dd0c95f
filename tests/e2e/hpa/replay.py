"""Compares the pure model of the HPA with the real controller, sync by sync.

Nothing tells what the controller saw in a sync, so it is observed all the time, several times a second: the adapter's
answers (requested as the controller requests them), pods and sizes. A sync saw the state of the last observation before
it or, if something changed during the sync, that of the first observation after it. If the two differ, the model
decides for both, and both count as right until only one of them fits what the controller decides from then on. This is
the one race that is tolerated, and `Verdict.certain` counts the syncs that were free of it.

The API server's audit log tells when a sync was; its decision is `spec.replicas` and the HPA's conditions at the last
observation before the next sync.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.hpa.decision import AbleReason, ActiveReason, HpaDecision
from adapter.foundation.hpa.documents import milli, pod_of
from adapter.foundation.hpa.evaluation import evaluate
from adapter.foundation.hpa.pods import PodSample
from adapter.foundation.hpa.proposals import HpaWorkload, Observation, PodSamples, Totals, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.hpa.history import HpaHistory
    from adapter.foundation.hpa.spec import HPASpec
    from tests.e2e.controlplane.audit import AuditEvent
    from tests.e2e.controlplane.client import Document
    from tests.e2e.support.autoscalers import Autoscaler, Autoscalers

_RESCALED: Final = "SucceededRescale"
_GOT_SCALE: Final = "SucceededGetScale"
_NO_METRIC: Final = "FailedGet"
_CONDITIONS: Final = ("ScalingLimited", "AbleToScale", "ScalingActive")


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of one autoscaler at one observation."""

    workload: HpaWorkload
    observation: Observation
    limited: str
    """The reason of the condition ScalingLimited; empty before the first sync."""
    able: str
    """The reason of the condition AbleToScale."""
    active: str
    """The reason of the condition ScalingActive."""


@dataclass(frozen=True, slots=True)
class Look:
    """All states at one moment, which lies between the two times."""

    began: datetime
    ended: datetime
    seen: Mapping[str, Seen]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of comparing the model with the controller."""

    syncs: int
    certain: int
    """Syncs for which all states that may have been seen lead to the same decision."""
    decisions: tuple[tuple[int, int], ...]
    """The size before and after each sync of the controller."""
    reasons: frozenset[str]
    """The limits and look-backs that changed a decision."""


class DisagreementError(AssertionError):
    """The model's decision differs from the controller's for all states that it may have seen; the message has both."""


def look(scalers: Autoscalers) -> Look:
    """Return all states as they are now."""
    client, namespace = scalers.cluster.client, scalers.namespace
    began = datetime.now(UTC)
    answers = {name: _observation(scalers, one) for name, one in scalers.all.items()}
    pods = client.items(f"/api/v1/namespaces/{namespace}/pods")
    deployments = client.items(f"/apis/apps/v1/namespaces/{namespace}/deployments")
    hpas = client.items(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers")
    ended = datetime.now(UTC)
    reasons = {hpa["metadata"]["name"]: _reasons(hpa) for hpa in hpas}
    seen = {}
    for one in deployments:
        name = one["metadata"]["name"]
        own = tuple(pod_of(pod) for pod in pods if pod["metadata"]["labels"]["app"] == name)
        workload = HpaWorkload(one["spec"]["replicas"], one.get("status", {}).get("replicas", 0), own)
        found = reasons.get(name, {})
        seen[name] = Seen(workload, answers[name], *(found.get(condition, "") for condition in _CONDITIONS))
    return Look(began, ended, seen)


def _reasons(hpa: Document) -> dict[str, str]:
    return {one["type"]: one["reason"] for one in hpa.get("status", {}).get("conditions") or []}


def _observation(scalers: Autoscalers, one: Autoscaler) -> Observation:
    reply = scalers.ask(one)
    if reply.status != 200:
        return Unavailable(reply.document["message"])
    items = reply.document["items"]
    if one.metric["type"] != "Pods":
        return Totals(tuple(milli(item["value"]) for item in items))
    return PodSamples({item["describedObject"]["name"]: PodSample(milli(item["value"])) for item in items})


@dataclass(frozen=True, slots=True)
class _Sync:
    """One sync: the states that it may have seen, and its outcome."""

    at: datetime
    candidates: tuple[tuple[HpaWorkload, Observation], ...]
    size: int
    limited_before: str
    limited: str
    able: str


def replay(name: str, spec: HPASpec, syncs: Sequence[AuditEvent], looks: Sequence[Look]) -> Verdict:
    """Let the model decide each sync except the last, whose outcome is not known yet. Raises DisagreementError."""
    harnesses: tuple[HpaHistory | None, ...] = (None,)
    certain, decisions, reasons = 0, [], set()
    for number, (event, after) in enumerate(itertools.pairwise(syncs)):
        sync = _sync(name, event, after, looks)
        decided = [
            evaluate(spec, workload, [observation], harness, now=event.end.timestamp())
            for harness in harnesses
            for workload, observation in sync.candidates
        ]
        done = sync.size, sync.limited, sync.able
        fitting = [decision for decision in decided if _outcome(decision, sync.limited_before) == done]
        if not fitting:
            raise DisagreementError(_told(name, number, sync, decided))
        certain += len({_outcome(decision, sync.limited_before) for decision in decided}) == 1
        decisions.append((fitting[0].current, fitting[0].desired))
        reasons |= {str(fitting[0].reason), sync.limited}
        harnesses = tuple({decision.history: None for decision in fitting})
    return Verdict(len(syncs) - 1, certain, tuple(decisions), frozenset(reasons))


def _sync(name: str, event: AuditEvent, following: AuditEvent, looks: Sequence[Look]) -> _Sync:
    before = [one.seen[name] for one in looks if one.ended <= event.start][-1]
    after = next(one.seen[name] for one in looks if one.began >= event.end)
    outcome = [one.seen[name] for one in looks if one.ended <= following.start][-1]
    # What follows from the decision itself is nothing that it may have seen.
    own = after.workload.spec_replicas != before.workload.spec_replicas
    workloads = [before.workload] if own else [before.workload, after.workload]
    distinct: list[tuple[HpaWorkload, Observation]] = []
    observations = [before.observation, after.observation]
    if outcome.active.startswith(_NO_METRIC):
        # On a machine that is too busy the controller may have no answer in time, beside looks that have one.
        observations = [Unavailable(outcome.active)]
    for pair in itertools.product(workloads, observations):
        if pair not in distinct:
            distinct.append(pair)
    size = outcome.workload.spec_replicas
    return _Sync(event.end, tuple(distinct), size, before.limited, outcome.limited, outcome.able)


def _outcome(decision: HpaDecision, limited_before: str) -> tuple[int, str, str]:
    """Return the size and the reasons as the controller leaves them after a decision.

    Without any metric, as on a machine that is too busy for an answer, the controller changes neither the size nor the
    limit.
    """
    if isinstance(decision.reason, ActiveReason) and decision.proposals:
        return decision.desired, limited_before, _GOT_SCALE
    reasons = {step.step: step.detail for step in decision.steps}
    rescaled = decision.desired != decision.current
    able = _RESCALED if rescaled else reasons.get("stabilized", AbleReason.READY_FOR_NEW_SCALE.value)
    return decision.desired, reasons.get("limited", ""), able


def _told(name: str, number: int, sync: _Sync, decided: Sequence[HpaDecision]) -> str:
    real: tuple[Any, ...] = (sync.size, sync.limited, sync.able)
    model = "\n".join(f"  {_outcome(one, sync.limited_before)}: {one.message}; {one.steps}" for one in decided)
    seen = "\n".join(f"  {candidate}" for candidate in sync.candidates)
    return f"{name}, sync {number} at {sync.at:%H:%M:%S.%f}: the controller did {real}\nmodel:\n{model}\nseen:\n{seen}"
