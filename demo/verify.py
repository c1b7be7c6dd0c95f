"""The independent check behind the verdict: every value and decision is computed again from Prometheus by other code.

Nothing here is shared with the adapter, whose decisions are made by `foundation/hpa`. Values come from Prometheus
through its own client library, with another query than the rules use. Decisions follow the formulas of the Kubernetes
documentation of the HorizontalPodAutoscaler, in exact fractions.

A value is right if Prometheus returns it for exactly the second in the answer's timestamp. Two of Prometheus's own
writes become visible later than the time that they state: a scrape, by its duration, which is at most its time-out of a
second (so values from less than a second before are right as well), and the mark that ends the series of a target that
is gone (so the last value of such a pod is right for two more scrapes).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from demo.records import Served, Sync, Target

SCRAPE_WRITES_SECONDS = (0.25, 0.5, 0.75, 1.0)
END_WRITES_SECONDS = (1.75, 2.5)
OLDEST_ANSWER_SECONDS = 12.0
"""The largest age of an answer: the adapter's refresh interval, which applies until the interval of a new requester is
known, a second because queries are evaluated at whole seconds, and a second for the query itself."""
OBJECTS_SECONDS = 5.0
"""How long a pod that has started may be missing in answers."""
CONNECTIONS = 'websocket_connections{{job="gateway",namespace="{}"}}'
PREDICTED = 'max(tidewatch_predicted_load{{job="recommender",target_namespace="{}"}})'
TOLERANCE = Fraction(1, 10)
UP_PODS, UP_PERCENT = 4, 100


class Witness(Protocol):
    """A client of Prometheus that the adapter does not use: `PrometheusConnect` of prometheus-api-client."""

    def custom_query(self, query: str, params: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - its own type
        """Evaluate an instant query."""


@dataclass(slots=True)
class Findings:
    """The results of the independent check."""

    answers_checked: int = 0
    answers_wrong: list[str] = field(default_factory=list)
    decisions_checked: int = 0
    decisions_wrong: list[str] = field(default_factory=list)


def check(syncs: Sequence[Sync], target: Target, witness: Witness) -> Findings:
    """Return the number of checks, and a sentence for each value or decision that differs."""
    findings = Findings()
    started: dict[str, float] = {}
    for sync in syncs:
        # Pods of the first round were known before it.
        since = sync.seconds if started else -math.inf
        started |= {pod: since for pod in sync.pods if pod not in sync.pending and pod not in started}
        if sync.connections is not None:
            findings.answers_checked += 1
            truth = stood(witness, target.namespace, sync.connections.stamped)
            findings.answers_wrong += wrong_connections(sync, sync.connections, truth, _just_started(started, sync))
        if sync.total is not None:
            findings.answers_checked += 1
            truth = stood(witness, target.namespace, sync.total.stamped)
            findings.answers_wrong += wrong_total(sync.total, truth)
        if sync.predicted is not None:
            findings.answers_checked += 1
            predictions = predicted(witness, target.namespace, sync.predicted.stamped)
            findings.answers_wrong += wrong_prediction(sync.predicted, predictions)
    for sync, expected in zip(syncs, decisions(syncs, target), strict=True):
        findings.decisions_checked += 1
        if expected != sync.desired:
            findings.decisions_wrong.append(f"at {sync.seconds:.1f} s: asked for {sync.desired}, expected {expected}")
    return findings


def stood(witness: Witness, namespace: str, stamped: float) -> dict[str, set[int | None]]:
    """Return the values that each pod had, or still seemed to have, at that second; None stands for no sample."""
    now, *just_before = [_look(witness, namespace, stamped - back) for back in (0.0, *SCRAPE_WRITES_SECONDS)]
    truth: dict[str, set[int | None]] = {
        pod: {look.get(pod) for look in (now, *just_before)} for look in (now, *just_before) for pod in look
    }
    for back in END_WRITES_SECONDS:
        for pod, value in _look(witness, namespace, stamped - back).items():
            if pod not in now:
                truth.setdefault(pod, {None}).add(value)
    return truth


def predicted(witness: Witness, namespace: str, stamped: float) -> list[Fraction]:
    """Return the largest predicted load at that second, and earlier values that may still have been visible."""
    found: list[Fraction] = []
    for back in (0.0, *SCRAPE_WRITES_SECONDS, *END_WRITES_SECONDS):
        rows = witness.custom_query(PREDICTED.format(namespace), params={"time": stamped - back})
        found += [Fraction(row["value"][1]) for row in rows]
    return found


def wrong_prediction(served: Served, truth: Sequence[Fraction]) -> list[str]:
    """Return what is wrong with the predicted load: it must be one of the visible values, to the thousandth."""
    value = Fraction(sum(served.values.values()), 1000)
    if any(abs(value - each) <= Fraction(1, 1000) for each in truth):
        return _too_old(served)
    stood = [float(each) for each in truth]
    return [f"answer of {served.stamped:.0f}: predicted load {float(value)}, Prometheus has {stood}"]


def _look(witness: Witness, namespace: str, unix_seconds: float) -> dict[str, int]:
    rows = witness.custom_query(CONNECTIONS.format(namespace), params={"time": unix_seconds})
    return {row["metric"]["pod"]: int(float(row["value"][1])) for row in rows}


def _just_started(started: Mapping[str, float], sync: Sync) -> Collection[str]:
    """Return the pods that the adapter may not know yet: it looks at its objects about once a second."""
    return {pod for pod, seconds in started.items() if sync.seconds - seconds < OBJECTS_SECONDS}


def wrong_connections(
    sync: Sync, served: Served, truth: Mapping[str, Collection[int | None]], just_started: Collection[str] = ()
) -> list[str]:
    """Return the errors in the Pods metric's answer. A pod that has just started may be missing."""
    at = f"answer of {served.stamped:.0f}"
    wrong = [
        f"{at}: {pod} = {value}m, Prometheus has {sorted(truth.get(pod, ()), key=str)}"
        for pod, value in served.values.items()
        if Fraction(value, 1000) not in truth.get(pod, ())
    ]
    wrong += [
        f"{at}: {pod} is missing, Prometheus has {sorted(truth[pod], key=str)}"
        for pod in sync.pods
        if pod not in sync.pending
        and pod not in just_started
        and pod in truth
        and None not in truth[pod]
        and pod not in served.values
    ]
    return wrong + _too_old(served)


def wrong_total(served: Served, truth: Mapping[str, Collection[int | None]]) -> list[str]:
    """Return what is wrong with the External metric's answer: it must be one of the possible sums."""
    sums = {0}
    for values in truth.values():
        sums = {total + (value or 0) for total in sums for value in values}
    value = Fraction(sum(served.values.values()), 1000)
    wrong = [] if value in sums else [f"answer of {served.stamped:.0f}: total {value}, Prometheus has {sorted(sums)}"]
    return wrong + _too_old(served)


def _too_old(served: Served) -> list[str]:
    age = served.received - served.stamped
    return [f"answer of {served.stamped:.0f} was {age:.1f} s old"] if age > OLDEST_ANSWER_SECONDS else []


def decisions(syncs: Sequence[Sync], target: Target) -> list[int]:
    """Return the replicas that an HPA asks for at each of these rounds."""
    remembered = [(syncs[0].seconds, syncs[0].replicas)] if syncs else []
    decided = []
    for index, sync in enumerate(syncs):
        proposal = _proposal(sync, target)
        if proposal is None:
            decided.append(sync.replicas)
            continue
        remembered.append((sync.seconds, proposal))
        recent = [n for at, n in remembered if at > sync.seconds - target.scale_down_window_seconds]
        decided.append(_behave(syncs[: index + 1], proposal, recent, target))
    return decided


def _proposal(sync: Sync, target: Target) -> int | None:
    """Return the largest proposal of all metrics; a metric that failed forbids a smaller size."""
    metrics = [(sync.connections, _by_average), (sync.total, _by_total)]
    if target.follows_forecast:
        metrics.append((sync.predicted, _by_total))
    proposals = [
        proposal
        for served, propose in metrics
        if served is not None and served.values and (proposal := propose(served, sync, target)) is not None
    ]
    if not proposals or (len(proposals) < len(metrics) and max(proposals) < sync.replicas):
        return None
    return max(proposals)


def _by_average(served: Served, sync: Sync, target: Target) -> int | None:
    """Return `ceil(ratio x pods)`; pods that start or lack a sample are counted so that they dampen the change."""
    goal = target.connections_per_pod * 1000
    started = [pod for pod in sync.pods if pod not in sync.pending]
    values = [value for pod, value in served.values.items() if pod not in sync.pending]
    missing = sum(pod not in served.values for pod in started)
    if not values:
        return None
    ratio = Fraction(sum(values) // len(values), goal)
    dampening = missing + (len(sync.pending) if ratio > 1 else 0)
    if not dampening:
        return sync.replicas if _tolerated(ratio) else math.ceil(ratio * len(started))
    if ratio < 1:
        values += [goal] * missing
    elif ratio > 1:
        values += [0] * dampening
    damped = Fraction(sum(values) // len(values), goal)
    if _tolerated(damped) or (ratio < 1 < damped) or (damped < 1 < ratio):
        return sync.replicas
    proposal = math.ceil(damped * len(values))
    turned = (damped < 1 and proposal > sync.replicas) or (damped > 1 and proposal < sync.replicas)
    return sync.replicas if turned else proposal


def _by_total(served: Served, sync: Sync, target: Target) -> int:
    goal = target.connections_per_pod * 1000
    total, pods = sum(served.values.values()), sync.status_replicas
    return pods if _tolerated(Fraction(total, goal * pods)) else math.ceil(Fraction(total, goal))


def _tolerated(ratio: Fraction) -> bool:
    return 1 - TOLERANCE <= ratio <= 1 + TOLERANCE


def _behave(syncs: Sequence[Sync], proposal: int, recent: Sequence[int], target: Target) -> int:
    """Return the proposal as limited by the scale-down window, the scale-up policies and the bounds."""
    now = syncs[-1]
    if proposal < now.replicas:
        wanted = min(now.replicas, max(recent))
    else:
        since = now.seconds - target.scale_up_period_seconds
        recently = [(before, after) for before, after in itertools.pairwise(syncs) if before.seconds > since]
        start = now.replicas - sum(after.replicas - before.replicas for before, after in recently)
        allowed = max(start + UP_PODS, math.ceil(start * (1 + Fraction(UP_PERCENT, 100))), now.replicas)
        wanted = min(proposal, allowed)
    return min(max(wanted, target.min_replicas), target.max_replicas)
