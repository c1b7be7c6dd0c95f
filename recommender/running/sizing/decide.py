"""One cluster size decision as a whole: inputs, the answer, the brakes, the record and the memory. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from recommender.cluster_size.brakes import braked
from recommender.cluster_size.calculate import decide_size
from recommender.cluster_size.future.plan import future_pods
from recommender.cluster_size.health.back_off import not_in_future
from recommender.cluster_size.model.answer import ClusterSizeAnswer, GroupSize
from recommender.cluster_size.model.memory import ClusterSizeMemory
from recommender.cluster_size.node_groups.discover import node_groups
from recommender.decisions.calculation import InputMissingError
from recommender.decisions.constraints import HOUR_SECONDS
from recommender.decisions.loop import Decision
from recommender.decisions.record import Record, Status, Step
from recommender.decisions.settings import Output
from recommender.decisions.texts import message_with_notes
from recommender.decisions.times import is_fresh, rfc3339
from recommender.outputs.sizes.group_wishes import GroupWishes
from recommender.running.sizing.outcome import SizeDecision, buffer_size, remembered_writes, wished_sizes
from recommender.running.sizing.situation import known_cluster, notes_about, situation_of

if TYPE_CHECKING:
    from recommender.cluster_size.future.forecasts import PredictedReplicas
    from recommender.cluster_size.model.settings import ClusterSizeSettings
    from recommender.cluster_size.node_groups.plugin_reading import PluginReading
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.settings import RecommendationPolicy

_MOST_STEPS: Final = 50
"""In the steps of the record, which are metrics; the answer has all of them."""


@dataclass(frozen=True, slots=True)
class SizeInputs:
    """What a cluster size is decided from."""

    poll: Inputs
    predictions: tuple[PredictedReplicas, ...] = ()
    """Of the forecasts that it follows."""
    plugin: PluginReading | None = None
    """What the plugin of its node groups states; None if it has none."""


@dataclass(frozen=True, slots=True)
class SizeQuestion:
    """A recommendation whose sizes are to be decided, and how."""

    policy: RecommendationPolicy
    settings: ClusterSizeSettings
    waits: bool
    """Whether timers and young pods are waited for, as `run` does."""
    writes: bool
    """Whether this process writes sizes where the recommendation has the output `scale`."""

    @property
    def writes_sizes(self) -> bool:
        """Whether the sizes of this recommendation are written."""
        return self.writes and Output.SCALE in self.policy.outputs


def decide_cluster_size(
    question: SizeQuestion,
    inputs: SizeInputs,
    memory: Memory,
    now: float,
    last: ClusterSizeAnswer | None = None,
) -> Decision:
    """Return the decision at `now`, in seconds since the Unix epoch; `last` is the last answer of this process."""
    policy, settings = question.policy, question.settings
    before = _usable(memory.cluster_size, now)
    try:
        known = known_cluster(inputs.poll.cluster, policy.stale_after_seconds, now)
    except InputMissingError as error:
        return Decision(_without_inputs(policy, before, now, str(error), last), memory)
    groups = node_groups(settings.node_groups, known.cluster, now, inputs.plugin)
    situation = situation_of(known, groups, settings, inputs.poll, before, now)
    future = future_pods(settings, inputs.predictions, situation.workloads, situation.pods, now)
    situation = replace(
        situation,
        waits=question.waits,
        writes_sizes=question.writes_sizes,
        future_pods=(*situation.future_pods, *future.pods),
    )
    answer = decide_size(situation, settings)
    whole = frozenset(group.name for group in groups.groups if group.options.zero_or_max)
    limited = braked(answer, policy.brakes, before, now, whole)
    until = known.confirmed + policy.stale_after_seconds
    wishes = (
        wished_sizes(policy.name, limited.answer, groups, settings, known.cluster, until)
        if question.writes_sizes
        else GroupWishes()
    )
    buffer = buffer_size(settings, future.pods, known.cluster)
    refused = tuple(f"node group {name} is not scaled: {reason}" for name, reason in wishes.refusals.items())
    problem = (f"the CapacityBuffer is not sized: {buffer.problem}",) if buffer is not None and buffer.problem else ()
    priorities = (f"priorities are not used: {situation.priorities_problem}",) if situation.priorities_problem else ()
    notes = (*limited.answer.notes, *priorities, *refused, *problem, *future.notes, *notes_about(known.cluster))
    answer = replace(limited.answer, notes=notes)
    holds = (*limited.holds, *((answer.hold,) if answer.hold else ()))
    record = Record(
        policy.name,
        policy.type,
        now,
        Status.HELD if holds else Status.OK,
        message_with_notes((*holds, policy.note, summary_text(answer)), answer.notes),
        inputs=_inputs(answer, len(situation.nodes), len(situation.pods)),
        steps=tuple(Step(step.step, step.value, f"{step.group}: {step.detail}") for step in answer.steps[:_MOST_STEPS]),
        binding=answer.binding,
        size=answer,
    )
    remembered = remembered_writes(_remembered(answer, before, known.confirmed, now), wishes, groups, now)
    return SizeDecision(record, replace(memory, cluster_size=remembered), wishes, buffer, until)


def _usable(memory: ClusterSizeMemory | None, now: float) -> ClusterSizeMemory:
    """Return the memory without times of the future: a clock that was set back must not let a node go early.

    What has been unneeded since a later time counts from now on. So do cool-downs, requests and back-offs, which would
    otherwise stop changes for as long as the clock was ahead.
    """
    if memory is None:
        return ClusterSizeMemory()
    return replace(
        memory,
        unneeded_since={node: min(since, now) for node, since in memory.unneeded_since.items()},
        last_scale_up=_not_after(memory.last_scale_up, now),
        last_delete=_not_after(memory.last_delete, now),
        last_failure=_not_after(memory.last_failure, now),
        requested={name: replace(each, since=min(each.since, now)) for name, each in memory.requested.items()},
        back_offs={name: not_in_future(each, now) for name, each in memory.back_offs.items()},
        changes=tuple(min(time, now) for time in memory.changes if time > now - HOUR_SECONDS),
    )


def _not_after(time: float | None, now: float) -> float | None:
    return None if time is None else min(time, now)


def _without_inputs(
    policy: RecommendationPolicy, memory: ClusterSizeMemory, now: float, reason: str, last: ClusterSizeAnswer | None
) -> Record:
    """Return the last sizes with their old time as long as they are recent enough, then none. No node goes."""
    decided, confirmed = memory.decided, memory.confirmed
    if decided is None or confirmed is None:
        return Record(policy.name, policy.type, now, Status.STALE, reason)
    if not is_fresh(confirmed, now, policy.stale_after_seconds):
        message = f"{reason}; the last sizes were decided at {rfc3339(decided)}"
        return Record(policy.name, policy.type, decided, Status.STALE, message)
    until = rfc3339(confirmed + policy.stale_after_seconds)
    message = f"{reason}; the last sizes are kept until {until}, and no node goes"
    known = {group.name: group for group in last.groups} if last is not None else {}
    groups = tuple(_held_group(name, size, known.get(name), reason) for name, size in sorted(memory.sizes.items()))
    return Record(
        policy.name,
        policy.type,
        decided,
        Status.HELD,
        message,
        size=ClusterSizeAnswer(groups, hold=reason, is_held=True),
    )


def _held_group(name: str, size: int, known: GroupSize | None, reason: str) -> GroupSize:
    text = f"the last size is kept: {reason}"
    if known is None:
        return GroupSize(name, None, size, size, None, None, text)
    return replace(known, recommended=size, after_removals=size, reason=text)


def summary_text(answer: ClusterSizeAnswer) -> str:
    """Return the answer in one sentence."""
    grown = [
        f"{group.name} from {group.current} to {group.recommended}"
        for group in answer.groups
        if group.current is not None and group.recommended > group.current
    ]
    due = sum(removal.is_due for removal in answer.removals)
    pending = sum(len(alike.pods) for alike in answer.unschedulable)
    parts = [
        f"grow {', '.join(grown)}" if grown else "",
        f"{due} node{'' if due == 1 else 's'} may go" if due else "",
        f"{pending} pod{'' if pending == 1 else 's'} that no group can hold" if pending else "",
    ]
    return "; ".join(part for part in parts if part) or "the size is right"


def _inputs(answer: ClusterSizeAnswer, nodes: int, pods: int) -> dict[str, float]:
    return {
        "nodes": nodes,
        "pods": pods,
        "pending_pods": answer.pending_pods,
        "node_groups": len(answer.groups),
    }


def _remembered(
    answer: ClusterSizeAnswer, before: ClusterSizeMemory, confirmed: float, now: float
) -> ClusterSizeMemory:
    """Return the memory for the next decision."""
    memory = answer.memory or before
    sizes = {group.name: group.recommended for group in answer.groups}
    changed = bool(before.sizes) and any(before.sizes.get(name, size) != size for name, size in sizes.items())
    return replace(
        memory,
        sizes=sizes,
        decided=now,
        confirmed=confirmed,
        changes=(*before.changes, now) if changed else before.changes,
    )
