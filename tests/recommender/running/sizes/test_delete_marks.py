"""Marks of Machines to delete, with killed processes and failing servers: no mark outlives its removal.

A leftover mark would let the next scale-down, whoever requests it, delete a node that may hold pods by then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.cluster.values.storage import Storage
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, ServerError, UnknownOutcomeError
from recommender.decisions.inputs import Inputs
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, RecommendationPolicy
from recommender.kinds.cluster_size.model.answer import answer_of
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterApiGroups,
    ClusterSizeSettings,
    NodeGroupSources,
    ScaleDownSettings,
)
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.running.memory.memory_document import decode_memory, encode_memory
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.kinds.cluster_size.deciding import decide_sizes, writes_of
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import (
    cluster,
    machine,
    owner,
    scalable,
    state,
)
from tests.recommender.kinds.cluster_size.test_decide import WEB
from tests.recommender.running.sizes.size_harness import GROUP, SizeHarness, removal
from tests.support.apiserver_kinds import MACHINE_DEPLOYMENTS, MACHINES

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import ClusterState

MARK: Final = "cluster.x-k8s.io/delete-machine"
POLICY = RecommendationPolicy("nodes", "clusterSize", outputs=frozenset({Output.SCALE}), stale_after_seconds=60.0)
SETTINGS = ClusterSizeSettings(
    NodeGroupSources(cluster_api=ClusterApiGroups(("capi",), mark_machines=True)),
    scale_down=ScaleDownSettings(unneeded_seconds=0.0, delay_after_add_seconds=0.0, delay_after_failure_seconds=0.0),
)
ROLLED_OUT = {"replicas": 4, "upToDateReplicas": 4, "readyReplicas": 4}
START: Final = 1_800_000_000.0


class KilledError(BaseException):
    """The process ends here."""


class MarkHarness(SizeHarness):
    """A process that decides and writes, beside the MachineSet controller; nodes in `busy` are full of pods."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.busy = {"n1", "n3", "n4"}
        self.writes_sizes = True
        self.notes: tuple[str, ...] = ()
        self.memory = Memory()
        self.policy, self.settings = POLICY, SETTINGS
        self.gone: list[str] = []
        self.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one.update(status=ROLLED_OUT))

    def configure_marks(self, option: bool | None) -> None:  # noqa: FBT001 - the value of a key
        groups = ClusterApiGroups(("capi",), mark_machines=option)
        self.settings = replace(SETTINGS, node_groups=NodeGroupSources(cluster_api=groups))

    def facts(self) -> ClusterState:
        group = self.store.get_without_rights(MACHINE_DEPLOYMENTS, "capi", "workers")
        owned = scalable("workers-x7f2k", 4, kind="MachineSet", owned_by=owner("MachineDeployment", "workers"))
        machines = self.store.listed(MACHINES)
        names = [one["status"]["nodeRef"]["name"] for one in machines]
        found = state(cluster(), group, owned, *machines)
        pods = tuple(
            pod(f"web-{name}", "4", "1Gi", namespace="shop", node=name, controller="web")
            for name in names
            if name in self.busy
        )
        return replace(
            found,
            nodes=Observed(tuple(map(node, names)), self.now),
            pods=Observed(pods, self.now),
            objects={
                kind: Observed(fact.value, self.now) if isinstance(fact, Observed) else fact
                for kind, fact in found.objects.items()
            },
            workloads=Observed((WEB,), self.now),
            disruption_budgets=Observed((), self.now),
            namespace_labels=Observed({"shop": {}}, self.now),
            storage=Storage(
                Observed({}, self.now), Observed({}, self.now), Observed({}, self.now), Observed({}, self.now)
            ),
        )

    def decide(self) -> None:
        """Decide once and try to write, with a second attempt later; then let the MachineSet controller act."""
        self.now += 10.0
        decision = decide_sizes(
            self.policy,
            self.settings,
            Inputs(self.facts()),
            self.memory,
            self.now,
            waits=True,
            writes_sizes=self.writes_sizes,
        )
        self.memory = decision.memory
        answer = answer_of(decision.record)
        self.notes = () if answer is None else answer.notes
        self.groups.follow_writes("nodes", writes_of(decision).groups.writes)
        try:
            self.groups.step()
        except KilledError:
            self.restart()
        self.reconcile()

    def restart(self) -> None:
        """Start a process that knows what is stored, after the Lease of the former one has ended."""
        self.memory = decode_memory("nodes", encode_memory("nodes", self.memory)).memory
        self.begin()

    def reconcile(self) -> None:
        """Delete Machines as a MachineSet does: marked ones first, and then the last one by name."""
        machines = self.store.listed(MACHINES)
        while len(machines) > self.size:
            goes = max(machines, key=lambda one: (MARK in one["metadata"]["annotations"], one["metadata"]["name"]))
            machines.remove(goes)
            self.store.remove(MACHINES, "capi", goes["metadata"]["name"])
            self.gone.append(goes["metadata"]["name"])
        status = {"replicas": len(machines), "upToDateReplicas": len(machines), "readyReplicas": len(machines)}
        if status != self.store.get_without_rights(MACHINE_DEPLOYMENTS, "capi", "workers")["status"]:
            self.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one.update(status=status))

    def person_resizes(self, by: int) -> None:
        self.change(
            MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["spec"].update(replicas=max(1, self.size + by))
        )
        self.reconcile()

    def calm(self) -> None:
        """Stop all failures, and let time pass."""
        self.objects.before, self.objects.after_put = (lambda _method, _path: None), (lambda _path: None)
        for _ in range(4):
            self.decide()
            self.wait(60.0)
            self.reconcile()


def dies(harness: MarkHarness, number: int, *, after: bool) -> None:
    """Kill the process at the call with this number, or after the change with this number."""
    left = [number]

    def count(*_: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError

    if after:
        harness.objects.after_put = count
    else:
        harness.objects.before = count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(6))
def test_a_process_killed_at_any_call_of_a_removal_leaves_no_mark_on_a_node_with_pods(
    number: int, *, after: bool
) -> None:
    harness = MarkHarness()
    dies(harness, number, after=after)
    harness.decide()
    harness.busy.add("n2")
    harness.calm()
    assert harness.marked == []
    gone = list(harness.gone)
    harness.person_resizes(-1)
    assert harness.gone == [*gone, "m4"], "the removal by a person takes the Machine that Cluster API chooses"


def test_a_removal_decided_again_after_a_kill_is_completed() -> None:
    harness = MarkHarness()
    dies(harness, 1, after=True)
    harness.decide()
    harness.calm()
    assert (harness.gone, harness.marked, harness.size) == (["m2"], [], 3)


@pytest.mark.parametrize("value", ["2026-11-22 10:00:00 +0000 UTC", "yes", ""], ids=["ca", "person", "empty"])
def test_a_mark_set_by_others_is_never_removed(value: str) -> None:
    harness = MarkHarness()
    harness.busy.add("n2")
    harness.annotate(MACHINES, "m3", **{MARK: value})
    harness.calm()
    assert harness.marked == ["m3"]


def test_a_mark_stays_after_the_size_is_lowered_until_its_machine_is_deleted() -> None:
    harness = MarkHarness()
    harness.annotate(MACHINES, "m2", **{MARK: "tidewatch"})
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["spec"].update(replicas=3))
    reconcile, harness.reconcile = harness.reconcile, lambda: None  # type: ignore[method-assign]
    harness.calm()
    assert harness.marked == ["m2"]
    reconcile()
    assert harness.gone == ["m2"]


def test_a_mark_is_kept_while_an_unanswered_scale_call_may_still_take_effect() -> None:
    harness = MarkHarness()
    late: list[Callable[[], None]] = []

    def lost(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("/scale") and not late:
            version = harness.store.get_without_rights(MACHINE_DEPLOYMENTS, "capi", "workers")["metadata"]
            late.append(lambda: _lower_version(harness, version["resourceVersion"]))
            raise UnknownOutcomeError("PUT: sent, but no answer")

    harness.objects.before = lost
    harness.decide()
    harness.busy.add("n2")
    harness.now -= 9.0
    harness.decide()
    assert harness.outcomes[-1].result is ScaleResult.FENCED
    late[0]()
    harness.reconcile()
    assert harness.gone == ["m2"], "its mark was still there"
    harness.calm()
    assert harness.marked == []


def _lower_version(harness: MarkHarness, version: str) -> None:
    group = harness.store.get_without_rights(MACHINE_DEPLOYMENTS, "capi", "workers")
    assert group["metadata"]["resourceVersion"] == version
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["spec"].update(replicas=3))


@pytest.mark.parametrize("option", [None, False], ids=["not written", "off"])
def test_marks_are_removed_even_after_mark_machines_was_disabled(option: bool | None) -> None:  # noqa: FBT001 - the value of a key
    harness = MarkHarness()
    dies(harness, 0, after=True)
    harness.decide()
    assert harness.marked == ["m2"], "the process was killed between the mark and the size"
    harness.configure_marks(option)
    harness.calm()
    assert (harness.gone, harness.marked) == ([], [])


def forbid_machines(harness: MarkHarness) -> None:
    """Forbid all changes of Machines."""

    def refuse(_method: str, path: str) -> None:
        if "/machines/" in path:
            raise ForbiddenError("PUT: 403 Forbidden", 403)

    harness.objects.before = refuse


def test_the_machines_and_the_command_are_named_if_marks_may_not_be_removed() -> None:
    harness = MarkHarness()
    harness.annotate(MACHINES, "m2", **{MARK: "tidewatch"})
    harness.annotate(MACHINES, "m3", **{MARK: "tidewatch"})
    harness.configure_marks(None)
    forbid_machines(harness)
    harness.decide()
    outcome = harness.outcomes[-1]
    assert outcome.result is ScaleResult.REFUSED
    assert "delete-machine on Machines of MachineDeployment capi/workers" in outcome.message
    assert "first: m2, m3; the mark cannot be removed: PUT: 403 Forbidden" in outcome.message
    assert outcome.message.endswith(f"`kubectl annotate machines.cluster.x-k8s.io -n capi m2 m3 {MARK}-`")
    assert (harness.size, harness.gone) == (4, [])


def test_a_mark_that_cannot_be_removed_does_not_prevent_scale_up() -> None:
    harness = MarkHarness()
    harness.annotate(MACHINES, "m2", **{MARK: "tidewatch"})
    forbid_machines(harness)
    write = PendingWrite("nodes", GROUP, 5, harness.now + 60.0, known_size=4, unmarks=(removal(2),))
    harness.groups.follow_writes("nodes", [write])
    harness.groups.step()
    assert (harness.outcomes[-1].result, harness.size) == (ScaleResult.OK, 5)


def test_a_mark_is_left_if_somebody_has_lowered_the_size_so_that_its_machine_is_about_to_go() -> None:
    harness = MarkHarness()
    harness.annotate(MACHINES, "m2", **{MARK: "tidewatch"})
    write = PendingWrite("nodes", GROUP, 5, harness.now + 60.0, known_size=4, unmarks=(removal(2),))
    harness.change(MACHINE_DEPLOYMENTS, "capi", "workers", lambda one: one["spec"].update(replicas=3))
    harness.groups.follow_writes("nodes", [write])
    harness.groups.step()
    assert (harness.outcomes[-1].result, harness.marked) == (ScaleResult.REFUSED, ["m2"])


def test_old_marks_and_the_command_are_noted_if_sizes_are_no_longer_written() -> None:
    harness = MarkHarness()
    harness.annotate(MACHINES, "m2", **{MARK: "tidewatch"})
    harness.policy = replace(POLICY, outputs=frozenset({Output.METRIC}))
    harness.writes_sizes = False
    harness.decide()
    command = f"run `kubectl annotate machines.cluster.x-k8s.io -n capi m2 {MARK}-`"
    assert [note for note in harness.notes if note.endswith(command)]
    assert harness.objects.written == []


def test_a_size_is_not_lowered_while_another_machine_has_an_old_mark() -> None:
    harness = MarkHarness()
    harness.annotate(MACHINES, "m3", **{MARK: "tidewatch"})

    def fails(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("m3"):
            raise ServerError("500", 500)

    harness.objects.before = fails
    harness.decide()
    assert (harness.size, harness.gone) == (4, [])
    harness.calm()
    assert (harness.gone, harness.marked) == (["m2"], [])


FAULTS: Final = ("none", "500", "lost", "unanswered", "killed before", "killed after")
EVENTS = st.one_of(
    st.tuples(st.just("decide"), st.sampled_from(FAULTS), st.integers(0, 5)),
    st.tuples(st.just("busy"), st.sampled_from(("n1", "n2", "n3", "n4")), st.just(0)),
    st.tuples(st.just("person"), st.just(""), st.sampled_from((-1, 1))),
    st.tuples(st.just("option"), st.sampled_from(("", "on", "off")), st.just(0)),
)


def fault(harness: MarkHarness, kind: str, number: int) -> None:
    """Let the call or the change with this number fail."""
    left = [number]

    def at(*_: str) -> bool:
        left[0] -= 1
        return left[0] == -1

    def before(method: str, path: str) -> None:
        if kind in {"500", "lost", "killed before"} and at(method, path):
            raise {
                "500": ServerError("500", 500),
                "lost": UnknownOutcomeError("sent, but no answer") if method == "PUT" else ServerError("503", 503),
                "killed before": KilledError(),
            }[kind]

    def after(path: str) -> None:
        if kind in {"unanswered", "killed after"} and at(path):
            raise UnknownOutcomeError("sent, but no answer") if kind == "unanswered" else KilledError

    harness.objects.before, harness.objects.after_put = before, after


@given(st.lists(EVENTS, min_size=1, max_size=12))
@settings(max_examples=60)
def test_every_own_mark_is_removed_after_any_failures(events: list[tuple[str, str, int]]) -> None:
    harness = MarkHarness()
    for what, which, number in events:
        if what == "busy":
            harness.busy ^= {which}
        elif what == "person":
            _person(harness, number)
        elif what == "option":
            harness.configure_marks({"": None, "on": True, "off": False}[which])
        else:
            fault(harness, which, number)
            harness.decide()
    harness.busy = {"n1", "n2", "n3", "n4"}
    harness.calm()
    assert harness.marked == []


def _person(harness: MarkHarness, by: int) -> None:
    """Let a person resize the group, and new Machines appear."""
    harness.person_resizes(by)
    while len(harness.store.listed(MACHINES)) < harness.size:
        name = f"m{len(harness.gone) + len(harness.store.listed(MACHINES)) + 1}"
        owned = owner("MachineSet", "workers-x7f2k")
        one: dict[str, Any] = machine(name, f"n{name[1:]}", owned_by=owned)
        harness.store.put(MACHINES, "capi", name, one)
    harness.reconcile()
