"""Random targets, situations, lists and clocks through the whole loop, and the properties that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Autoscaler, Observed, Unknown
from recommender.decisions.inputs import TargetState
from recommender.decisions.record import Status, TargetReference
from tests.recommender.configuration.files import entry, whole
from tests.recommender.running.polls.whole_loop import GATE, PREDICTIVE, PROPORTIONAL, Loop, Poll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.decisions.record import Record
    from tests.recommender.running.polls.whole_loop import Outcome

START: Final = 1_800_000_000.0
STALE_AFTER: Final = 60.0
AHEAD: Final = 1.0
"""How far a clock may be ahead."""
AGES: Final = st.sampled_from([*[0.0] * 9, 5.0, 59.0, -0.5, 61.0, 253.0, START, -30.0, -3600.0])
"""Ages of answers and samples, including one from 1970 and some from the future."""
CLOCK_STEPS: Final = st.sampled_from([*[10.0] * 9, 45.0, 70.0, 3700.0, 86_400.0, -5.0, -60.0, -3600.0])
COUNTS: Final = st.sampled_from([0, 0, 1, 2, 3, 7, 40, 300])
NUMBERS: Final = st.sampled_from([0.0, 0.0, 1.0, 9.0, 31.0, 120.0, 5000.0, 1e12])
TARGETS: Final = {
    name: tuple(TargetReference("apps/v1", "Deployment", f"{name}-{number}", "web") for number in range(4))
    for name in (PROPORTIONAL, PREDICTIVE)
}
STATES: Final = st.none() | st.builds(
    TargetState,
    st.sampled_from([0, 1, 2, 3, 8, 13, 30, 5000]),
    rollout=st.booleans(),
    paused=st.sampled_from([None, None, None, "true", "up", "down", "nonsense"]),
)
OWNED: Final = st.sampled_from([*[0] * 7, 1])
"""How many HPAs own a target."""
UNKNOWN: Final = Unknown("a list of another kind")


@dataclass(frozen=True)
class Setting:
    """One configuration, and the sizes between which each recommendation must stay."""

    text: str
    targets: Mapping[str, tuple[TargetReference, ...]]
    bounds: Mapping[str, tuple[int, int]]
    has_gate: bool
    has_query: bool


BRAKES: Final = st.lists(
    st.sampled_from(
        ["paused: true", "paused: up", "paused: down", "maxStep: 2", "maxStep: 10%", "maxChangesPerHour: 1"]
    ),
    max_size=2,
    unique_by=lambda line: line.partition(":")[0],
)


@st.composite
def settings_of_both(draw: st.DrawFn) -> Setting:
    bounds = {}
    for name in TARGETS:
        lowest = draw(st.integers(1, 12))
        bounds[name] = (lowest, draw(st.integers(lowest, 40)))
    targets = {name: each[: draw(st.integers(1, 4))] for name, each in TARGETS.items()}
    has_gate, has_query = draw(st.booleans()), draw(st.booleans())
    low, high = bounds[PROPORTIONAL]
    linear = f"linear: {{nodesPerReplica: 2, min: {low}, max: {high}}}"
    drivers = ", drivers: {query: {expr: q, perReplica: 10}}" if has_query else ""
    more = draw(st.sampled_from(["", ", hysteresis: 10%", ", quietPeriod: 60s"]))
    low, high = bounds[PREDICTIVE]
    gate = f", freezeUnless: {GATE}" if has_gate else ""
    load = f"load: sum(x), loadPerReplica: 10, horizon: 2m, minReplicas: {low}, maxReplicas: {high}{gate}"
    kinds = {PROPORTIONAL: f"proportional: {{{linear}{drivers}{more}}}", PREDICTIVE: f"predictive: {{{load}}}"}
    entries = [
        entry(
            name,
            f"targets: [{', '.join(map(_yaml, targets[name]))}]",
            "outputs: [metric, scale]",
            *draw(BRAKES),
            kind=kind,
        )
        for name, kind in kinds.items()
    ]
    top = f"prometheus: {{url: 'http://p'}}\nstaleAfter: {STALE_AFTER:g}s\n"
    return Setting(whole(*entries, top=top), targets, bounds, has_gate, has_query)


def _yaml(target: TargetReference) -> str:
    return f"{{apiVersion: apps/v1, kind: Deployment, namespace: {target.namespace}, name: {target.name}}}"


def _autoscalers(target: TargetReference, owning: int) -> tuple[Autoscaler, ...]:
    owner = Autoscaler(target.namespace, "hpa", {}, target.api_version, target.kind, target.name, 1, 50, None, None, ())
    return (owner,) * owning


@st.composite
def polls(draw: st.DrawFn) -> list[Poll]:
    now, found = START, []
    everyone = [target for targets in TARGETS.values() for target in targets]

    def fact(values: st.SearchStrategy[Any]) -> Any:  # noqa: ANN401 - the value of any fact
        if draw(st.integers(0, 7)) == 0:
            return UNKNOWN
        return Observed(draw(values), max(0.0, now - draw(AGES)))

    for _ in range(draw(st.integers(3, 8))):
        now += draw(CLOCK_STEPS)
        found.append(
            Poll(
                now,
                nodes=fact(COUNTS),
                query=fact(NUMBERS),
                gate=fact(st.sampled_from([0.0, 1.0])),
                load=fact(NUMBERS),
                predicted=draw(st.none() | NUMBERS),
                targets={target: fact(STATES) for target in everyone},
                autoscalers={target.namespace: fact(OWNED.map(partial(_autoscalers, target))) for target in everyone},
                starts_anew=draw(st.integers(0, 4)) == 0,
            )
        )
    return found


def is_fresh(fact: Observed[Any] | Unknown, now: float) -> bool:
    return isinstance(fact, Observed) and -AHEAD <= now - fact.time <= STALE_AFTER


def facts_of(setting: Setting, name: str, poll: Poll) -> list[Observed[Any] | Unknown]:
    """Return the inputs of a size; a gate without a value holds the size, whatever the load is."""
    if name == PROPORTIONAL:
        return [poll.nodes, poll.query] if setting.has_query else [poll.nodes]
    return [poll.load, poll.gate] if setting.has_gate and isinstance(poll.gate, Observed) else [poll.load]


def sizes_of(record: Record) -> dict[TargetReference, int | None]:
    return {each.target: each.recommended_replicas for each in record.targets}


@dataclass(frozen=True)
class Decided:
    """A size that was decided from fresh facts."""

    replicas: int
    oldest: float
    """The time of the oldest of these facts."""


@seed(22)
@settings(max_examples=80)
@given(settings_of_both(), polls())
def test_sizes_stay_within_bounds_and_never_follow_from_old_data(setting: Setting, sequence: list[Poll]) -> None:
    loop, known = Loop(setting.text), dict[TargetReference, list[Decided]]()
    for poll in sequence:
        outcome = loop.poll(poll)
        for name, targets in setting.targets.items():
            low, high = setting.bounds[name]
            record, facts = outcome.records[name], facts_of(setting, name, poll)
            sizes, fresh = sizes_of(record), all(is_fresh(fact, poll.now) for fact in facts)
            written = [outcome.written[target] for target in targets if target in outcome.written]
            for size in (*sizes.values(), *written, record.replicas):
                assert size is None or low <= size <= high
            assert fresh or not written, "what is not known any more is never written"
            for target, size in sizes.items():
                before = known.setdefault(target, [])
                if size is None:
                    continue
                if fresh:
                    oldest = min(fact.time for fact in facts if isinstance(fact, Observed))
                    before.append(Decided(size, oldest))
                    continue
                assert record.status is Status.HELD
                assert any(
                    size == each.replicas and -AHEAD <= poll.now - each.oldest <= STALE_AFTER for each in before
                ), "a size is held only as long as the facts that led to it are recent enough"
            for target in targets:
                if target in outcome.written:
                    assert is_fresh(poll.targets[target], poll.now)
                    assert is_fresh(poll.autoscalers[target.namespace], poll.now)


@seed(22)
@settings(max_examples=80)
@given(settings_of_both(), polls(), polls(), st.data())
def test_old_data_and_other_targets_do_not_change_a_size(
    setting: Setting, sequence: list[Poll], others: list[Poll], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(setting.targets)))
    target = data.draw(st.sampled_from(setting.targets[name]))
    one, other = Loop(setting.text), Loop(setting.text)
    for number, poll in enumerate(sequence):
        changed = _poll_with_other_values(poll, others[number % len(others)], target)
        assert _own(one.poll(poll), name, target) == _own(other.poll(changed), name, target)


def _own(outcome: Outcome, name: str, target: TargetReference) -> tuple[int | None, int | None]:
    return sizes_of(outcome.records[name])[target], outcome.written.get(target)


def _poll_with_other_values(poll: Poll, other: Poll, target: TargetReference) -> Poll:
    """Return the poll with another poll's values wherever these must not matter to the target."""

    def instead(fact: Any, another: Any) -> Any:  # noqa: ANN401 - any fact
        is_old = isinstance(fact, Observed) and not is_fresh(fact, poll.now)
        return replace(fact, value=another.value) if is_old and isinstance(another, Observed) else fact

    return replace(
        poll,
        nodes=instead(poll.nodes, other.nodes),
        query=instead(poll.query, other.query),
        gate=instead(poll.gate, other.gate),
        load=instead(poll.load, other.load),
        targets={**other.targets, target: instead(poll.targets[target], other.targets[target])},
        autoscalers={
            **other.autoscalers,
            target.namespace: instead(poll.autoscalers[target.namespace], other.autoscalers[target.namespace]),
        },
    )


def known(poll_now: float = START, **changes: Any) -> Poll:  # noqa: ANN401 - the fields of a dataclass
    everyone = [target for targets in TARGETS.values() for target in targets]
    facts = Poll(
        poll_now,
        nodes=Observed(10, poll_now),
        query=Observed(30.0, poll_now),
        gate=Observed(1.0, poll_now),
        load=Observed(40.0, poll_now),
        predicted=40.0,
        targets={target: Observed(TargetState(3), poll_now) for target in everyone},
        autoscalers={target.namespace: Observed((), poll_now) for target in everyone},
    )
    return replace(facts, **changes)


def of_one_target_each(low: int = 1, high: int = 40) -> str:
    linear = f"linear: {{nodesPerReplica: 2, min: {low}, max: {high}}}, drivers: {{query: {{expr: q, perReplica: 10}}}}"
    load = f"load: sum(x), loadPerReplica: 10, horizon: 2m, minReplicas: {low}, maxReplicas: {high}"
    kinds = {
        PROPORTIONAL: f"proportional: {{{linear}}}",
        PREDICTIVE: f"predictive: {{{load}, freezeUnless: {GATE}}}",
    }
    lines = {name: (f"targets: [{_yaml(TARGETS[name][0])}]", "outputs: [metric, scale]") for name in kinds}
    entries = [entry(name, *lines[name], kind=kind) for name, kind in kinds.items()]
    return whole(*entries, top="prometheus: {url: 'http://p'}\n")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (PROPORTIONAL, {"nodes": Observed(10, START + 30)}),
        (PROPORTIONAL, {"query": Observed(30.0, START + 30)}),
        (PREDICTIVE, {"load": Observed(40.0, START + 30)}),
        (PREDICTIVE, {"gate": Observed(1.0, START + 30)}),
    ],
)
def test_an_input_with_a_time_in_the_future_is_stale_even_beside_a_recent_one(
    name: str, changes: dict[str, Any]
) -> None:
    outcome = Loop(of_one_target_each()).poll(known(**changes))
    record = outcome.records[name]
    assert (record.status, record.replicas) == (Status.STALE, None)
    assert record.message == "an input has a time in the future, so its age is unknown"
    assert TARGETS[name][0] not in outcome.written


def test_a_size_that_a_target_had_long_ago_is_not_held() -> None:
    poll = known(gate=Observed(0.0, START))
    old: dict[TargetReference, Any] = {each: Observed(TargetState(30), START - 7200) for each in poll.targets}
    record = Loop(of_one_target_each()).poll(replace(poll, targets=old)).records[PREDICTIVE]
    assert (record.status, record.replicas) == (Status.STALE, None)
    assert record.message.endswith("no earlier size is known")
