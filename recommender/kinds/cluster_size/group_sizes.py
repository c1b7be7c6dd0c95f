"""The sizes of node groups as a value that the brakes act on, and their outcome. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import structs

from recommender.decisions.calculation import SettledValue
from recommender.decisions.constraints.brakes import MAX_CHANGES
from recommender.decisions.policy_settings import Output
from recommender.decisions.record import Step
from recommender.kinds.cluster_size import brakes
from recommender.kinds.cluster_size.counted_changes import changes_under_way, with_changes, written_groups
from recommender.kinds.cluster_size.group_writes import GroupWrites
from recommender.kinds.cluster_size.health.failed_machines import failed_machine_notes
from recommender.kinds.cluster_size.known_cluster import notes_about
from recommender.kinds.cluster_size.model.answer import summary_text
from recommender.kinds.cluster_size.outcome import SizeWrites, buffer_size, marks_left, recommended_writes
from recommender.kinds.cluster_size.requested_sizes import with_asked_sizes

if TYPE_CHECKING:
    from recommender.decisions.calculation import DecisionContext
    from recommender.decisions.constraints.brakes import ChangeStop
    from recommender.decisions.policy_settings import MaxStep
    from recommender.decisions.targets.target_situation import Situation
    from recommender.kinds.cluster_size.future.predicted_pods import FuturePods
    from recommender.kinds.cluster_size.known_cluster import KnownCluster
    from recommender.kinds.cluster_size.model.answer import ClusterSizeAnswer, SizeStep
    from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.cluster_size.model.size_situation import ClusterSituation

_MOST_STEPS: Final = 50
"""The most steps of a record, each of which becomes a metric; the answer has all steps."""


@dataclass(frozen=True, slots=True)
class SizeContext:
    """The inputs that the sizes were calculated from."""

    known: KnownCluster
    situation: ClusterSituation
    settings: ClusterSizeSettings
    future: FuturePods
    before: ClusterSizeMemory
    changes: tuple[float, ...] = ()
    """The changes of the last hour that were really made, ascending, in Unix seconds."""


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """An answer to which the brakes are applied."""

    replicas: ClassVar[None] = None
    answer: ClusterSizeAnswer
    context: SizeContext
    holds: tuple[str, ...] = ()
    """Why sizes or nodes are kept, and until when."""

    def kept_text(self, _situation: Situation) -> str:
        """Return a text that says what is kept."""
        return "the sizes are kept"

    def above_rollouts(self, _situation: Situation) -> GroupSizes:
        """Return the sizes unchanged: node groups have no rollouts."""
        return self

    def within_step(self, step: MaxStep, _situation: Situation) -> GroupSizes:
        """Limit how far each group grows, and how many of its nodes are removed."""
        groups = self.context.situation.groups.groups
        whole = frozenset(group.name for group in groups if group.options.zero_or_max)
        return replace(self, answer=brakes.within_step(self.answer, step, whole))

    def would_change(self, _situation: Situation) -> bool:
        """Return whether a size differs from the last one, or a node is removed."""
        return brakes.would_change(self.answer, *changes_under_way(self.context.before, self.context.situation))

    def stopped(self, stop: ChangeStop, _situation: Situation) -> GroupSizes:
        """Keep the last sizes after too many changes, and the current sizes during a pause."""
        is_count = stop.name == MAX_CHANGES
        kept = changes_under_way(self.context.before, self.context.situation) if is_count else ({}, {})
        answer = brakes.hold_stopped_directions(self.answer, stop, *kept)
        if answer is self.answer and not (stop.up and stop.down):
            return self
        hold = f"{stop.sentence}, until {stop.until}" if is_count else stop.sentence
        return replace(self, answer=answer, holds=(*self.holds, hold))

    def settled(self, context: DecisionContext) -> SettledValue:
        """Return what is recommended, written and remembered."""
        policy, own, before = context.policy, self.context, self.context.before
        situation, cluster, settings = own.situation, own.known.cluster, own.settings
        until = own.known.confirmed + policy.stale_after_seconds
        group_writes = GroupWrites()
        if situation.writes_sizes:
            group_writes = recommended_writes(policy.name, situation, settings, self.answer, cluster, until)
        marks = () if Output.SCALE in policy.outputs else marks_left(situation.groups, settings, cluster)
        writes = SizeWrites(group_writes, buffer_size(settings, own.future.pods, cluster), until)
        answer = replace(self.answer, notes=(*self._notes(writes), *marks))
        holds = (*self.holds, *((answer.hold,) if answer.hold else ()))
        lasts = before.sizes
        sizes = {group.name: group.recommended for group in answer.groups}
        left_out = {group.name for group in answer.groups if group.is_left_out}
        shown = sizes.keys() - written_groups(situation) - left_out
        memory = structs.replace(answer.memory or before, sizes=sizes)
        memory, replaced = with_asked_sizes(memory, group_writes, situation.groups, situation.now, own.changes)
        return SettledValue(
            replicas=None,
            is_remembered=True,
            has_changed=any(lasts.get(name, sizes[name]) != sizes[name] for name in shown),
            is_held=bool(holds),
            own=memory,
            changes=with_changes(own.changes, replaced),
            inputs=_inputs(answer, len(situation.nodes), len(situation.pods)),
            steps=tuple(_step(step) for step in answer.steps[:_MOST_STEPS]),
            binding=answer.binding,
            reasons=(*holds, policy.note, summary_text(answer)),
            notes=answer.notes,
            details=answer,
            writes=writes,
            decide_again=answer.waits_until,
        )

    def _notes(self, writes: SizeWrites) -> tuple[str, ...]:
        """Return what the user should know, one sentence each."""
        situation, buffer = self.context.situation, writes.buffer
        notes = [*self.answer.notes, *failed_machine_notes(self.answer.failed_machines)]
        if situation.priorities_problem:
            notes.append(f"priorities are not used: {situation.priorities_problem}")
        notes += [f"node group {name} is not scaled: {reason}" for name, reason in writes.groups.refusals.items()]
        if buffer is not None and buffer.problem:
            notes.append(f"the CapacityBuffer is not sized: {buffer.problem}")
        return (*notes, *self.context.future.notes, *notes_about(self.context.known.cluster))


def _step(step: SizeStep) -> Step:
    return Step(step.step, step.value, f"{step.group}: {step.detail}" if step.group else step.detail)


def _inputs(answer: ClusterSizeAnswer, nodes: int, pods: int) -> dict[str, float]:
    return {
        "nodes": nodes,
        "pods": pods,
        "pending_pods": answer.pending_pods,
        "node_groups": len(answer.groups),
    }
