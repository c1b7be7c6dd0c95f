"""The store in which a watch keeps pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.facts.pods import pod_of
from adapter.foundation.cluster.forms.pods import PodForm
from adapter.foundation.cluster.stores.pods import PodStore
from adapter.foundation.cluster.values.placed_pods import pods_by_place
from adapter.foundation.time.timestamps import seconds_of
from tests.support.cluster_objects import pod_object

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.placed_pods import PlacedPods

NOW = 1000.0


def form(*arguments: Any, **named: Any) -> PodForm:  # noqa: ANN401 - those of pod_object
    return msgspec.json.decode(msgspec.json.encode(pod_object(*arguments, **named)), type=PodForm)


class Kept(PodStore):
    """A store that counts its changes."""

    def __init__(self) -> None:
        self.changes = 0
        super().__init__(pod_of, self.count, lambda: NOW)

    def count(self) -> None:
        self.changes += 1

    def fill(self, *forms: PodForm) -> None:
        replacement = self.replacement()
        for one in forms:
            replacement.put(one)
        replacement.commit()


def names(view: PlacedPods) -> dict[str, list[str]]:
    return {node: sorted(pod.name for pod in pods) for node, pods in view.by_node.items()}


def test_a_bind_a_move_and_a_delete_reach_the_view() -> None:
    store = Kept()
    store.put(form("web"))
    assert names(store.view) == {}
    assert [pod.name for pod in store.snapshot] == ["web"]
    assert [pod.name for pod in store.view.pending] == ["web"]
    store.put(form("web", node="a"))
    store.put(form("db", node="a"))
    assert names(store.view) == {"a": ["db", "web"]}
    assert store.view.pending == ()
    assert [pod.name for pod in store.view.by_namespace["shop"]] == ["web", "db"]
    store.remove("shop", "web")
    assert names(store.view) == {"a": ["db"]}
    assert store.view.last_ended_at == {"a": NOW}
    store.remove("shop", "db")
    assert (len(store), names(store.view), store.view.by_namespace) == (0, {}, {})
    assert store.changes == 5


def test_unchanged_nodes_keep_their_tuples_and_equal_pods_do_not_count_as_changes() -> None:
    store = Kept()
    store.fill(form("web", node="a"), form("db", "data", node="b"))
    before, changes = store.view, store.changes
    store.put(form("web", node="a"))
    store.fill(form("db", "data", node="b"), form("web", node="a"))
    assert store.view is before
    assert store.changes == changes
    store.put(form("web-2", node="a"))
    assert store.view.by_node["b"] is before.by_node["b"]
    assert store.view.by_namespace["data"] is before.by_namespace["data"]
    assert store.view.by_node["a"] is not before.by_node["a"]
    store.fill(form("db", "data", node="b"), form("web-2", node="a"), form("web", node="a"), form("new", node="c"))
    assert store.view.by_node["b"] is before.by_node["b"]


def test_ended_pods_are_dropped_and_their_end_time_is_kept() -> None:
    store = Kept()
    ended = "2026-11-22T05:30:00Z"
    store.fill(form("web", node="a"), form("job", node="b", phase="Succeeded", ended=ended))
    assert names(store.view) == {"a": ["web"]}
    store.put(form("web", node="a", phase="Failed"))
    assert store.view.by_node == {}
    assert store.view.last_ended_at == {"a": NOW, "b": seconds_of(ended)}
    assert store.snapshot == ()


def test_a_pod_missing_from_a_new_list_counts_as_ended() -> None:
    store = Kept()
    store.fill(form("web", node="a"), form("db", node="a"), form("api", node="b"))
    store.fill(form("web", node="a"), form("api", node="b"))
    assert store.view.last_ended_at == {"a": NOW}


def test_an_unusable_pod_is_left_out_and_counted_until_it_is_usable() -> None:
    store = Kept()
    store.fill(form("web", node="a"), form("odd", node="a", requests={"cpu": "four"}))
    store.put(form("web", node="a", requests={"memory": "-1"}))
    assert len(store) == 0
    assert store.view.by_node == {}
    (problem,) = store.problems
    assert problem.startswith("pods that cannot be used are left out (2); the first: Pod shop/odd: spec.containers[c]")
    store.put(form("web", node="a"))
    store.remove("shop", "odd")
    assert store.problems == ()
    assert names(store.view) == {"a": ["web"]}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "n1", "n2"]), st.sampled_from(["Running", "Failed"]))
        | st.sampled_from("abcdef"),
        max_size=30,
    )
)
def test_after_any_changes_the_view_matches_the_pods(changes: list[tuple[str, str, str] | str]) -> None:
    store = Kept()
    pods: dict[str, PodForm] = {}
    for change in changes:
        if isinstance(change, str):
            store.remove("shop", change)
            pods.pop(change, None)
        else:
            name, node, phase = change
            pods[name] = form(name, node=node, phase=phase)
            store.put(pods[name])
        assert names(store.view) == names(pods_by_place(pod_of(one) for one in pods.values()))
    assert len(store.snapshot) == sum(not pod_of(one).has_ended for one in pods.values())


def test_unbound_pods_are_pending_until_they_are_bound_or_deleted() -> None:
    store = Kept()
    store.fill(form("one"), form("two"), form("bound", node="a"))
    assert sorted(pod.name for pod in store.view.pending) == ["one", "two"]
    store.put(form("one", node="a"))
    store.put(form("three"))
    store.remove("shop", "two")
    assert [pod.name for pod in store.view.pending] == ["three"]
    assert store.view.pending == pods_by_place(store.snapshot).pending
    store.fill(form("bound", node="a"))
    assert store.view.pending == ()
