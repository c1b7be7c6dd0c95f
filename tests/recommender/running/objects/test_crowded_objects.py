"""Objects beyond the limit of their namespace are kept by name only, and are fetched once there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.cluster.watch.whole_objects.watching import AnyMeta, AnyObjectForm
from adapter.foundation.objects.resources import Resource
from recommender.configuration.objects.admission import unread
from recommender.running.objects.object_status import refused_status
from recommender.running.objects.object_watch import recommendation_store
from tests.recommender.configuration.objects.objects import SETTINGS, linear, made

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recommender.running.objects.object_watch import RecommendationStore

RESOURCE: Final = Resource(
    "tidewatch.io", "v1alpha1", "recommendations", "recommendation", "Recommendation", namespaced=True
)


C: Final = frozenset({("shop", "c")})


def form(
    key: str, *, created: str = "2026-01-01T00:00:00Z", generation: int = 1, status: Mapping[str, Any] | None = None
) -> AnyObjectForm:
    namespace, _, name = key.partition("/")
    metadata = AnyMeta(name, namespace, uid=f"uid-{key}", generation=generation, created=created)
    return AnyObjectForm(metadata, linear(), status)


def stored(*keys: str, most: int = 2) -> tuple[RecommendationStore, list[int]]:
    changes: list[int] = []
    store = recommendation_store(lambda: RESOURCE, most, lambda: changes.append(1))
    for key in keys:
        store.put(form(key))
    return store, changes


def names(store: RecommendationStore) -> list[str]:
    return [f"{namespace}/{name}" for namespace, name in sorted(store.known)]


def test_the_oldest_objects_of_each_namespace_are_kept() -> None:
    store, changes = stored("shop/c", "shop/b", "shop/a", "team/z")
    assert names(store) == ["shop/a", "shop/b", "team/z"]
    assert (len(store), len(changes), store.unreported()) == (4, 4, frozenset({"shop"}))


def test_objects_beyond_the_limit_cause_no_change() -> None:
    store, changes = stored("shop/a", "shop/b")
    before = len(changes)
    for place in range(100):
        store.put(form(f"shop/more-{place}"))
        store.put(form(f"shop/more-{place}", generation=2))
        store.remove("shop", f"more-{place}")
    assert len(changes) == before


def test_a_status_that_names_the_quota_is_not_written_again() -> None:
    refused = refused_status(made("shop/c"), unread("shop", SETTINGS), 0.0)
    store, _ = stored("shop/a", "shop/b")
    store.put(form("shop/c", status=refused))
    assert store.unreported() == frozenset()
    store.put(form("shop/c", status=refused, generation=2))
    assert store.unreported() == {"shop"}


def test_an_object_that_comes_within_the_limit_counts_once_it_has_been_fetched() -> None:
    store, changes = stored("shop/a", "shop/b", "shop/c")
    store.remove("shop", "a")
    assert (names(store), store.absent(), store.unreported()) == (["shop/b"], C, frozenset())
    store.restore(form("shop/c", generation=7))
    assert (names(store), store.absent()) == (["shop/b", "shop/c"], frozenset())
    assert store.known["shop", "c"].generation == 7
    before = len(changes)
    store.remove("shop", "c")
    store.restore(form("shop/c"))
    assert (names(store), len(changes)) == (["shop/b"], before + 1)


def test_a_new_limit_and_a_new_list_take_effect_at_once() -> None:
    store, _ = stored("shop/a", "shop/b", "shop/c")
    store.limit(1)
    assert (names(store), store.absent()) == (["shop/a"], frozenset())
    store.limit(2)
    assert store.absent() == {("shop", "b")}
    fresh = store.replacement()
    for key in ("shop/b", "shop/c", "shop/d"):
        fresh.put(form(key))
    fresh.commit()
    assert (names(store), len(store), store.absent()) == (["shop/b", "shop/c"], 3, frozenset())


def test_an_object_that_is_being_deleted_counts_as_gone() -> None:
    store, _ = stored("shop/a", "shop/b", "shop/c")
    leaving = form("shop/a")
    leaving.metadata.deleted = "2026-01-02T00:00:00Z"
    store.put(leaving)
    assert (names(store), store.absent()) == (["shop/b"], C)
