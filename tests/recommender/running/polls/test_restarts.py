"""An empty first list after a restart, through the whole loop, does not undo what is remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapter.foundation.cluster.values.state import Autoscaler, Observed, Unknown
from recommender.decisions.record import Status, TargetAction
from recommender.running.memory.memory_document import decode_memory
from tests.recommender.running.polls.test_whole_loop import START, TARGETS, known, of_one_target_each
from tests.recommender.running.polls.whole_loop import PROPORTIONAL, Loop, Poll

if TYPE_CHECKING:
    from recommender.decisions.memory import Memory
    from recommender.decisions.record import Record

TARGET = TARGETS[PROPORTIONAL][0]
NOTHING = "the first list since the start was empty, and"


def lists(seconds: float, nodes: int, *, began_empty: bool = False, **changes: Any) -> Poll:  # noqa: ANN401 - the fields of a dataclass
    """Return a poll with these lists, in which queries play no role."""
    now = START + seconds
    found = known(now, query=Observed(0.0, now), nodes=Observed(nodes, now, began_empty), **changes)
    return replace(found, starts_anew=began_empty and "starts_anew" not in changes)


def memory_of(loop: Loop) -> Memory:
    return decode_memory(PROPORTIONAL, loop.stored[PROPORTIONAL]).memory


def record_of(loop: Loop, poll: Poll) -> tuple[Record, int | None]:
    outcome = loop.poll(poll)
    return outcome.records[PROPORTIONAL], outcome.written.get(TARGET)


def test_a_first_list_without_nodes_does_not_scale_down_if_nodes_are_remembered() -> None:
    loop = Loop(of_one_target_each())
    assert record_of(loop, lists(0, nodes=24))[1] == 12
    assert memory_of(loop).known == {"nodes": 24}
    record, written = record_of(loop, lists(3600, nodes=0, began_empty=True))
    assert (record.status, record.replicas, written) == (Status.STALE, None, None)
    assert record.message.startswith(f"the nodes cannot be read: {NOTHING} 24 nodes were known before")
    assert memory_of(loop).known == {"nodes": 24}, "another restart doubts it as well"


def test_nodes_added_by_a_watch_after_an_empty_first_list_are_not_taken_for_all_nodes() -> None:
    loop = Loop(of_one_target_each())
    loop.poll(lists(0, nodes=24))
    record, written = record_of(loop, lists(3600, nodes=3, began_empty=True))
    assert (record.replicas, written) == (None, None)


def test_a_recent_size_is_held_while_an_empty_first_list_is_doubted() -> None:
    loop = Loop(of_one_target_each())
    loop.poll(lists(0, nodes=24))
    record, written = record_of(loop, lists(20, nodes=0, began_empty=True))
    assert (record.status, record.replicas, written) == (Status.HELD, 12, None)


def test_a_second_list_without_nodes_is_believed_and_so_are_later_ones() -> None:
    loop = Loop(of_one_target_each())
    loop.poll(lists(0, nodes=24))
    loop.poll(lists(3600, nodes=0, began_empty=True))
    assert record_of(loop, lists(3630, nodes=0))[1] == 1
    assert not memory_of(loop).known
    assert record_of(loop, lists(3660, nodes=0, began_empty=True))[1] == 1


def test_a_cluster_that_never_had_nodes_gets_the_size_for_no_nodes_at_once() -> None:
    loop = Loop(of_one_target_each())
    assert record_of(loop, lists(0, nodes=0, began_empty=True))[1] == 1
    assert record_of(loop, lists(5, nodes=6, began_empty=True, starts_anew=False))[1] is None, "it has 3 already"
    assert record_of(loop, lists(10, nodes=24, began_empty=True, starts_anew=False))[1] == 12


def test_a_new_leader_uses_the_memory_of_the_previous_one() -> None:
    leader, other = Loop(of_one_target_each()), Loop(of_one_target_each())
    leader.poll(lists(0, nodes=24))
    other.stored = leader.stored
    assert record_of(other, lists(60, nodes=0, began_empty=True, starts_anew=False))[1] is None


def test_a_first_list_without_hpas_does_not_remove_the_owner_of_a_target() -> None:
    hpa = Autoscaler(TARGET.namespace, "hpa", {}, "apps/v1", "Deployment", TARGET.name, 1, 50, None, None, ())
    loop = Loop(of_one_target_each())

    def with_hpas(seconds: float, *owners: Autoscaler, began_empty: bool = False, restarts: bool = False) -> Poll:
        poll = lists(seconds, nodes=24)
        found = Observed(owners, poll.now, began_empty)
        return replace(poll, autoscalers={**poll.autoscalers, TARGET.namespace: found}, starts_anew=restarts)

    record, written = record_of(loop, with_hpas(0, hpa))
    assert (record.targets[0].action, written) == (TargetAction.REFUSED, None)
    record, written = record_of(loop, with_hpas(60, began_empty=True, restarts=True))
    assert (record.targets[0].action, written) == (TargetAction.NONE, None)
    assert f"{NOTHING} 1 HPAs of the target were known before" in record.targets[0].message
    assert record_of(loop, with_hpas(90))[1] == 12


def test_a_failed_list_leaves_the_remembered_nodes_unchanged() -> None:
    loop = Loop(of_one_target_each())
    loop.poll(lists(0, nodes=24))
    refused = replace(lists(10, nodes=0), nodes=Unknown("a list of PodList of v1"), starts_anew=True)
    assert record_of(loop, refused)[1] is None
    assert memory_of(loop).known == {"nodes": 24}
