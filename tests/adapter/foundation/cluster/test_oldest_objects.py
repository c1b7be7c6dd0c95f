"""The oldest objects of each namespace, whatever is added, changed and removed, and how absent ones are fetched."""

from __future__ import annotations

import threading
from operator import itemgetter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity, OldestObjects, in_turns
from adapter.foundation.cluster.watch.whole_objects.absent import fetch_absent
from adapter.foundation.sources.kubernetes.errors import ServerError
from adapter.foundation.time.rate_limit import RateLimit

MOST = 3
KEYS = st.tuples(st.sampled_from("ab"), st.sampled_from("stuvwxyz"))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 3), st.integers(1, 2)),
        st.tuples(st.just("remove"), KEYS, st.just(0), st.just(0)),
        st.tuples(st.just("restore"), KEYS, st.integers(0, 3), st.just(1)),
        st.tuples(st.just("limit"), KEYS, st.integers(1, 5), st.just(0)),
    ),
    max_size=60,
)


def identity(key: tuple[str, str], age: int = 0, generation: int = 1) -> ObjectIdentity:
    return ObjectIdentity(*key, f"{key}{age}", generation, f"2026-01-0{age + 1}T00:00:00Z")


@given(CHANGES)
def test_exactly_the_oldest_objects_are_kept_or_absent_and_only_others_await_a_status(
    changes: list[tuple[str, tuple[str, str], int, int]],
) -> None:
    objects: OldestObjects[str] = OldestObjects(MOST)
    all_of_them: dict[tuple[str, str], ObjectIdentity] = {}
    for what, key, number, generation in changes:
        found = identity(key, number, generation)
        if what == "put":
            objects.put(found, found.uid, is_reported=False)
            all_of_them[key] = found
        elif what == "remove":
            assert objects.remove(key) == (all_of_them.pop(key, None) is not None)
        elif what == "restore":
            known = all_of_them.get(key)
            objects.restore(found if known is None else known, found.uid if known is None else known.uid)
        else:
            objects.limit(number)
        within: set[tuple[str, str]] = set()
        for namespace in "ab":
            ages = sorted(each.age for each in all_of_them.values() if each.namespace == namespace)
            within |= {(namespace, name) for _, name in ages[: objects.most]}
        assert set(objects.values) | objects.absent == within
        assert not set(objects.values) & objects.absent
        assert all(value == all_of_them[place].uid for place, value in objects.values.items())
        assert objects.number_beyond == len(all_of_them) - len(within)
        beyond = all_of_them.keys() - within
        assert objects.unreported == {namespace for namespace, _ in beyond}


def test_an_object_beyond_the_limit_is_returned_once_per_generation() -> None:
    objects: OldestObjects[str] = OldestObjects(1)
    for name in "stu":
        objects.put(identity(("a", name)), "", is_reported=False)
    assert [each.name for each in objects.take_unreported("a", 5)] == ["t", "u"]
    objects.put(identity(("a", "t")), "", is_reported=False)
    assert objects.unreported == frozenset()
    objects.put(identity(("a", "t"), generation=2), "", is_reported=False)
    objects.report_again(("a", "u"))
    objects.report_again(("a", "s"))
    objects.report_again(("a", "gone"))
    assert [each.name for each in objects.take_unreported("a", 5)] == ["t", "u"]


def test_namespaces_take_turns() -> None:
    assert in_turns([("a", "x"), ("a", "y"), ("b", "z")], itemgetter(0)) == [("a", "x"), ("b", "z"), ("a", "y")]


class Named(msgspec.Struct):
    """An object in the form in which it is fetched."""

    name: str


class Store:
    """A store that lacks some objects, and stops the fetching after `looks` look-ups."""

    def __init__(self, *missing: str, looks: int) -> None:
        self.missing = {("a", name) for name in missing}
        self.looks = looks
        self.stop = threading.Event()
        self.fetched: list[str] = []

    def absent(self) -> frozenset[tuple[str, str]]:
        self.looks -= 1
        if self.looks == 0:
            self.stop.set()
            return frozenset()
        return frozenset(self.missing)

    def restore(self, item: Named) -> None:
        self.fetched.append(item.name)
        self.missing.discard(("a", item.name))


def test_absent_objects_are_fetched_and_deleted_ones_are_left_to_the_watch() -> None:
    store = Store("s", "gone", "t", looks=2)

    def listing(_namespace: str, name: str) -> bytes:
        return msgspec.json.encode({"items": [] if name == "gone" else [{"name": name}]})

    fetch_absent(listing, Named, store, store.stop, wait_seconds=0.0)
    assert store.fetched == ["s", "t"]


@pytest.mark.parametrize("content", [b'{"items": [{"name": 7}]}', b'{"items": [{"name": "\xff"}]}'])
def test_an_unreadable_object_does_not_delay_others(content: bytes) -> None:
    store = Store("a", "b", looks=2)

    def listing(_namespace: str, name: str) -> bytes:
        return content if name == "a" else b'{"items": [{"name": "b"}]}'

    fetch_absent(listing, Named, store, store.stop, wait_seconds=0.0)
    assert store.fetched == ["b"]


@pytest.mark.parametrize("content", [b'{"items": [{"name": 7}]}', None], ids=["not readable", "refused"])
def test_an_object_that_stays_absent_is_logged_once(content: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    store = Store("a", looks=10)

    def listing(_namespace: str, _name: str) -> bytes:
        if content is None:
            raise ServerError("conversion webhook failed", 500)
        return content

    fetch_absent(listing, Named, store, store.stop, RateLimit(1e9, 100), wait_seconds=0.0)
    assert len([record for record in caplog.records if "a/a cannot be" in record.getMessage()]) == 1


def test_an_object_that_the_server_refuses_does_not_delay_others() -> None:
    store = Store("a", "b", looks=3)

    def listing(_namespace: str, name: str) -> bytes:
        if name == "a":
            raise ServerError("conversion webhook failed", 500)
        return msgspec.json.encode({"items": [{"name": name}]})

    fetch_absent(listing, Named, store, store.stop, wait_seconds=0.0)
    assert store.fetched == ["b"]


def test_unreadable_objects_do_not_use_up_the_rate() -> None:
    store = Store("a", "b", "c", looks=3)

    def listing(_namespace: str, name: str) -> bytes:
        return msgspec.json.encode({"items": [{"name": name if name == "c" else 7}]})

    limit_of_two_a_look = RateLimit(1.0, 2, clock=lambda: -2.0 * store.looks)
    fetch_absent(listing, Named, store, store.stop, limit_of_two_a_look, wait_seconds=0.0)
    assert store.fetched == ["c"]


def test_fetching_respects_its_rate_and_continues_after_a_failure() -> None:
    store = Store("s", "t", "u", looks=4)
    failures = [ServerError("down", 500)]

    def listing(_namespace: str, name: str) -> bytes:
        if failures:
            raise failures.pop()
        return msgspec.json.encode({"items": [{"name": name}]})

    limit = RateLimit(1e-9, 3)
    fetch_absent(listing, Named, store, store.stop, limit, wait_seconds=0.0)
    assert store.fetched == ["t", "u"]
