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
    reported: list[ObjectChange[str]] = []

    def changed(changes: Sequence[ObjectChange[str]]) -> None:
        assert changes
        reported.extend(changes)

    store = QuotaStore(most, convert, changed)
    for item in items:
        store.put(item)
    return store, reported


def replace(store: QuotaStore[AnyObjectForm, str], *items: AnyObjectForm) -> None:
    fresh = store.replacement()
    for item in items:
        fresh.put(item)
    fresh.commit()


def test_a_change_has_the_former_and_the_new_value() -> None:
    store, reported = stored(form("a"), form("a", 2))
    store.put(form("a", 0))
    assert reported == [
        ObjectChange(("shop", "a"), None, "1"),
        ObjectChange(("shop", "a"), "1", "2 after 1"),
        ObjectChange(("shop", "a"), "2 after 1", None),
    ]


def test_a_new_list_reports_only_differences() -> None:
    store, reported = stored(form("a"), form("b"))
    reported.clear()
    replace(store, form("a"), form("b"))
    assert reported == []
    replace(store, form("b", 2), form("c"))
    assert {change.key[1]: (change.before, change.after) for change in reported} == {
        "a": ("1", None),
        "b": ("1", "2 after 1"),
        "c": (None, "1"),
    }


def test_objects_beyond_the_quota_and_unknown_objects_are_not_reported() -> None:
    store, reported = stored(form("a"), form("b"))
    reported.clear()
    store.put(form("c"))
    store.put(form("c", 2))
    store.remove("shop", "c")
    store.remove("shop", "never-known")
    store.restore(form("c"))
    assert reported == []


def test_a_quota_that_changes_during_a_list_applies_to_the_list() -> None:
    store, _ = stored(most=2)
    fresh = store.replacement()
    fresh.put(form("a"))
    fresh.put(form("b"))
    store.limit(1)
    fresh.commit()
    assert (set(store.known), store.number_beyond, store.unreported()) == ({("shop", "a")}, 1, frozenset({"shop"}))


def test_a_status_that_is_already_written_is_not_written_again_in_any_order() -> None:
    def convert_with_status(item: AnyObjectForm, before: str | None) -> KeptObject[str] | None:
        kept = convert(item, before)
        return kept and KeptObject(kept.identity, kept.value, is_reported=item.status == "told")

    young, old = form("a", created="2026-01-02T00:00:00Z"), form("b")
    young.status = "told"
    store = QuotaStore(1, convert_with_status, lambda _: None)
    replace(store, young, old)
    assert store.unreported() == frozenset()
    store.remove("shop", "b")
    store.restore(young)
    store.put(old)
    assert store.unreported() == {"shop"}, "its status was written anew while it was within the quota"
