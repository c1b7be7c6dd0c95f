"""A store reports values that have changed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity
from adapter.foundation.cluster.stores.quota_store import KeptObject, ObjectChange, QuotaStore
from adapter.foundation.cluster.watch.whole_objects.watching import AnyMeta, AnyObjectForm

if TYPE_CHECKING:
    from collections.abc import Sequence


def form(name: str, generation: int = 1, created: str = "2026-01-01T00:00:00Z") -> AnyObjectForm:
    return AnyObjectForm(AnyMeta(name, "shop", uid=name, generation=generation, created=created))


def convert(item: AnyObjectForm, before: str | None) -> KeptObject[str] | None:
    """Return a text with the generation and the former value's generation; generation 0 is not kept."""
    meta = item.metadata
    identity = ObjectIdentity("shop", meta.name, meta.uid, meta.generation or 0, str(meta.created))
    former = "" if before is None or before[0] == str(meta.generation) else f" after {before[0]}"
    return KeptObject(identity, f"{meta.generation}{former}", is_reported=False) if meta.generation else None


def stored(*items: AnyObjectForm, most: int = 2) -> tuple[QuotaStore[AnyObjectForm, str], list[ObjectChange[str]]]:
    told: list[ObjectChange[str]] = []

    def changed(changes: Sequence[ObjectChange[str]]) -> None:
        assert changes
        told.extend(changes)

    store = QuotaStore(most, convert, changed)
    for item in items:
        store.put(item)
    return store, told


def replace(store: QuotaStore[AnyObjectForm, str], *items: AnyObjectForm) -> None:
    fresh = store.replacement()
    for item in items:
        fresh.put(item)
    fresh.commit()


def test_a_change_names_the_former_value_and_the_new_one() -> None:
    store, told = stored(form("a"), form("a", 2))
    store.put(form("a", 0))
    assert told == [
        ObjectChange(("shop", "a"), None, "1"),
        ObjectChange(("shop", "a"), "1", "2 after 1"),
        ObjectChange(("shop", "a"), "2 after 1", None),
    ]


def test_a_list_tells_only_of_what_differs() -> None:
    store, told = stored(form("a"), form("b"))
    told.clear()
    replace(store, form("a"), form("b"))
    assert told == []
    replace(store, form("b", 2), form("c"))
    assert {change.key[1]: (change.before, change.after) for change in told} == {
        "a": ("1", None),
        "b": ("1", "2 after 1"),
        "c": (None, "1"),
    }


def test_what_is_beyond_the_quota_or_unknown_tells_nobody() -> None:
    store, told = stored(form("a"), form("b"))
    told.clear()
    store.put(form("c"))
    store.put(form("c", 2))
    store.remove("shop", "c")
    store.remove("shop", "never-known")
    store.restore(form("c"))
    assert told == []


def test_a_quota_that_changes_during_a_list_holds_for_the_list() -> None:
    store, _ = stored(most=2)
    fresh = store.replacement()
    fresh.put(form("a"))
    fresh.put(form("b"))
    store.limit(1)
    fresh.commit()
    assert (set(store.known), store.number_beyond, store.unreported()) == ({("shop", "a")}, 1, frozenset({"shop"}))


def test_a_list_in_any_order_has_no_status_written_that_says_so_already() -> None:
    def told(item: AnyObjectForm, before: str | None) -> KeptObject[str] | None:
        kept = convert(item, before)
        return kept and KeptObject(kept.identity, kept.value, is_reported=item.status == "told")

    young, old = form("a", created="2026-01-02T00:00:00Z"), form("b")
    young.status = "told"
    store = QuotaStore(1, told, lambda _: None)
    replace(store, young, old)
    assert store.unreported() == frozenset()
    store.remove("shop", "b")
    store.restore(young)
    store.put(old)
    assert store.unreported() == {"shop"}, "its status was written anew while it was within the quota"
