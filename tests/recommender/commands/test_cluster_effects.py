"""The writers of a cluster are put together so that each write is known to whoever must know it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import ClusterState, Observed
from adapter.foundation.sources.kubernetes.writing import Fence
from adapter.foundation.time.clock import Clock
from recommender.commands.run.cluster_effects import cluster_effects
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import HELD_SECONDS, ReplacedSize, TargetState
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from recommender.running.inputs.own_writes import OwnWrites
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.sizes.reported_writes import WriteResults
from tests.recommender.configuration.files import entry, whole
from tests.recommender.decisions.harness import NOW, WEB
from tests.recommender.outputs.scale_harness import resolve
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from recommender.running.effects.leader_effects import ClusterEffects
    from recommender.running.inputs.input_gathering import TargetInput


@pytest.fixture
def own() -> OwnWrites:
    return OwnWrites(lambda: NOW)


@pytest.fixture
def stored() -> list[bool]:
    """Return whether the memory is stored before each write; by default, it is."""
    return [True]


@pytest.fixture
def results() -> WriteResults:
    return WriteResults()


@pytest.fixture
def effects(own: OwnWrites, stored: list[bool], results: WriteResults) -> ClusterEffects:
    """Return the writers of an empty cluster, whose tasks do not run."""
    plan, objects = plan_of(read_configuration(whole(entry("web")), "r.yaml")), Direct(ObjectStore())

    def nothing(*_: object) -> None: ...

    context: Any = SimpleNamespace(tasks=SimpleNamespace(running=nothing), on_stopping=nothing)
    parts: Any = SimpleNamespace(
        plan=lambda: plan,
        telemetry=SimpleNamespace(count_event=nothing, count_scale_call=nothing),
        history=SimpleNamespace(add=nothing),
        providers=None,
        size_writes=results,
        clock=Clock(lambda: 0.0, lambda: NOW),
    )
    writing: Any = SimpleNamespace(
        objects=objects,
        client=objects,
        resolve=resolve,
        fence=Fence(2.0, lambda _seconds: True),
        memories=SimpleNamespace(store_now=lambda *_: stored[0]),
        lookups=SimpleNamespace(uid=lambda _target: ""),
        own_writes=own,
        owner="ours",
        cluster=ClusterState,
    )
    return cluster_effects(context, parts, writing)


def replaced(own: OwnWrites) -> ReplacedSize | None:
    """Return the size of this process that another one has replaced, if a look-up finds 7 by the same manager."""
    state: TargetInput = Observed(TargetState(7, replicas_managers=("tidewatch",)), NOW + 1.0)
    found = own.mark_replaced(lambda targets: dict.fromkeys(targets, state))([WEB])[WEB]
    assert isinstance(found, Observed)
    assert found.value is not None
    return found.value.replaced


def test_the_writer_of_sizes_notes_each_size_and_the_writer_of_requests_ends_that(
    own: OwnWrites, effects: ClusterEffects
) -> None:
    """A write of requests may change the size by a webhook, as by the same field manager."""
    write = PendingWrite("web", WEB, 4, NOW + 60.0)
    assert effects.resizes is not None
    sizes, requests = effects.writer._hooks, effects.resizes.writer._hooks
    assert sizes.before_write(write)
    sizes.on_result(ScaleOutcome(write, ScaleResult.OK, stored=4))
    assert replaced(own) == ReplacedSize(4, NOW + HELD_SECONDS)
    assert requests.before_write(write)
    assert replaced(own) is None


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_size_of_nodes_may_be_sent_once_the_memory_is_stored(
    effects: ClusterEffects, stored: list[bool], results: WriteResults, *, is_stored: bool
) -> None:
    stored[0] = is_stored
    assert effects.size_writers is not None
    assert effects.size_writers.provided is not None
    for number, writer in enumerate((effects.size_writers.groups, effects.size_writers.provided), 1):
        assert writer._hooks.before_write(PendingWrite("nodes", WEB, number, NOW + 60.0)) == is_stored
        assert len(results.sent_of("nodes")) == (number if is_stored else 0)
