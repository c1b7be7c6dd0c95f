from __future__ import annotations

import random
import threading
from sys import getsizeof
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.metadata import ObjectMeta, PartialObjectMetadata
from adapter.foundation.objects.selectors import EVERYTHING, Operator, Requirement, Selector, parse_selector
from adapter.foundation.sources.object_index import ObjectIndex

Labels: TypeAlias = dict[str, str]

KEYS = ["app", "tier", "track"]
VALUES = ["", "web", "db", "5", "7"]
NAMESPACES = ["shop", "chat", None]

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
NamespacedName: TypeAlias = tuple[str | None, str]
History: TypeAlias = list[tuple[str, Any, Labels]]

objects = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(["a", "b", "c", "d", "e"]))
changes: st.SearchStrategy[tuple[str, Any, Labels]] = st.tuples(st.just("put"), objects, labels) | st.tuples(
    st.just("remove"), objects, st.just({})
)
replacements: st.SearchStrategy[tuple[str, Any, Labels]] = st.tuples(
    st.just("replace"), st.dictionaries(objects, labels, max_size=8), st.just({})
)


def item(namespace: str | None, name: str, its_labels: Labels) -> PartialObjectMetadata:
    return PartialObjectMetadata(ObjectMeta(name, namespace, its_labels))


def _requirement(key: str, operator: Operator, values: list[str]) -> Requirement:
    if operator in {Operator.IN, Operator.NOT_IN}:
        return Requirement(key, operator, tuple(values))
    if operator in {Operator.EXISTS, Operator.DOES_NOT_EXIST}:
        return Requirement(key, operator)
    if operator in {Operator.GREATER_THAN, Operator.LESS_THAN}:
        return Requirement(key, operator, ("6",))
    return Requirement(key, operator, (values[0],))


requirements = st.builds(
    _requirement,
    st.sampled_from(KEYS),
    st.sampled_from(list(Operator)),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
)
selectors = st.builds(Selector, st.lists(requirements, max_size=3).map(tuple))


@given(
    history=st.lists(changes | replacements, max_size=25),
    queries=st.lists(st.tuples(st.sampled_from(NAMESPACES), selectors), min_size=1, max_size=4),
    kept=st.integers(1, 3),
)
def test_names_equal_those_of_a_search_through_every_object(
    history: History, queries: list[tuple[str | None, Selector]], kept: int
) -> None:
    index = ObjectIndex(kept_answers=kept)
    known: dict[NamespacedName, Labels] = {}
    for what, subject, given_labels in history:
        if what == "put":
            index.put(item(subject[0], subject[1], given_labels))
            known[subject] = given_labels
        elif what == "remove":
            index.remove(subject[0], subject[1])
            known.pop(subject, None)
        else:
            replacement = index.replacement()
            for (namespace, name), its_labels in subject.items():
                replacement.put(item(namespace, name, its_labels))
            replacement.commit()
            known = dict(subject)
        for namespace, selector in queries:
            expected = sorted(
                name for (home, name), its in known.items() if home == namespace and selector.matches(its)
            )
            assert list(index.names(namespace, selector)) == expected
        assert index.namespaces() == tuple(sorted({home for home, _ in known if home}))
        assert {key: index.labels(*key) for key in known} == known
        assert len(index) == len(known)


def test_a_missing_object_has_no_labels() -> None:
    index = ObjectIndex()
    index.put(item("shop", "a", {"app": "web"}))
    assert index.labels("shop", "b") is None
    assert index.labels("chat", "a") is None
    assert index.labels(None, "a") is None


def test_an_answer_is_cached_until_its_namespace_changes() -> None:
    index = ObjectIndex()
    index.put(item("shop", "a", {"app": "web"}))
    index.put(item("chat", "b", {"app": "web"}))
    web = parse_selector("app=web")
    first = index.names("shop", web)
    index.put(item("chat", "c", {"app": "web"}))
    index.put(item("shop", "a", {"app": "web"}))
    assert index.names("shop", web) is first
    index.put(item("shop", "d", {"app": "web"}))
    assert index.names("shop", web) == ("a", "d")


def test_cached_answers_are_bounded_in_number() -> None:
    index = ObjectIndex(kept_answers=10)
    index.put(item("shop", "a", {"app": "web"}))
    for number in range(100):
        assert index.names("shop", parse_selector(f"app!=x{number}")) == ("a",)
    assert len(index._answers) == 10


@pytest.mark.parametrize(("pods", "values"), [(1000, 1), (10, 300)], ids=["many names", "long selectors"])
def test_cached_answers_are_bounded_in_bytes(pods: int, values: int) -> None:
    """The request chooses the selector, and the namespace how many names an answer has."""
    most = 100_000
    index = ObjectIndex(kept_bytes=most)
    for number in range(pods):
        index.put(item("shop", f"pod-{number}", {"app": "web"}))
    for number in range(100):
        others = ",".join(f"x{number}-{value}" for value in range(values))
        assert len(index.names("shop", parse_selector(f"app notin ({others})"))) == pods
    held = sum(getsizeof(names) + getsizeof(key[1].text) for key, (_, _, names) in index._answers.items())
    assert 0 < held < most
    assert index.names("shop", parse_selector("app=web")) is index.names("shop", parse_selector("app=web"))


def test_an_answer_that_is_too_large_for_the_cache_is_correct() -> None:
    index = ObjectIndex(kept_bytes=1)
    index.put(item("shop", "a", {"app": "web"}))
    for number in range(3):
        assert index.names("shop", parse_selector(f"app!=x{number}")) == ("a",)
    assert len(index._answers) == 1


def test_an_unknown_namespace_leaves_nothing_in_the_cache() -> None:
    index = ObjectIndex()
    for number in range(100):
        assert index.names(f"unknown-{number}", EVERYTHING) == ()
    assert index._answers == {}


def test_removed_labels_leave_no_trace_in_the_index() -> None:
    index = ObjectIndex()
    for number in range(50):
        index.put(item("shop", "a", {"app": f"v{number}"}))
        assert index.names("shop", parse_selector(f"app=v{number}")) == ("a",)
    space = index._spaces["shop"]
    assert (len(space.groups), len(space.by_label["app"])) == (1, 1)


def test_labels_that_only_selectors_name_do_not_fill_the_memory() -> None:
    index = ObjectIndex(kept_answers=10)
    index.put(item("shop", "a", {"app": "web"}))
    for number in range(1000):
        assert index.names("shop", parse_selector(f"x{number}=y")) == ()
    assert len(index._spaces["shop"].by_label) <= 100
    assert index.names("shop", parse_selector("app=web")) == ("a",)
    index.put(item("shop", "b", {"app": "web", "x1": "y"}))
    assert index.names("shop", parse_selector("x1=y,app=web")) == ("b",)


def test_a_reader_sees_the_old_list_or_the_new_one_and_nothing_between() -> None:
    index = ObjectIndex()
    lists = [tuple(f"{generation}-{number:03d}" for number in range(300)) for generation in ("old", "new")]
    stop = threading.Event()
    seen: set[tuple[str, ...]] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(index.names("shop", parse_selector("app in (web, db)")))

    def write() -> None:
        for generation in range(30):
            replacement = index.replacement()
            for name in lists[generation % 2]:
                replacement.put(item("shop", name, {"app": "web", "pod": name}))
            replacement.commit()

    write()
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    write()
    stop.set()
    for reader in readers:
        reader.join(10.0)
    assert seen <= set(lists)


def test_many_readers_see_consistent_states_during_writes() -> None:
    index = ObjectIndex()
    stop, wrong = threading.Event(), list[BaseException]()

    def read() -> None:
        dice = random.Random(7)
        while not stop.is_set():
            try:
                names = index.names("shop", parse_selector(f"app=v{dice.randrange(3)}"))
                assert list(names) == sorted(names)
                index.namespaces()
            except BaseException as error:  # noqa: BLE001 - reported to the test
                wrong.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    dice = random.Random(8)
    for _ in range(5000):
        name = f"p{dice.randrange(40)}"
        if dice.random() < 0.3:
            index.remove("shop", name)
        else:
            index.put(item("shop", name, {"app": f"v{dice.randrange(3)}"}))
    stop.set()
    for reader in readers:
        reader.join(10.0)
    assert wrong == []


@pytest.mark.parametrize("selector", ["app=web", "app in (web,db)", "app", "!tier", "app=web,tier=back"])
def test_an_object_is_found_only_in_its_namespace(selector: str) -> None:
    index = ObjectIndex()
    index.put(item("shop", "a", {"app": "web", "tier": "back"}))
    index.put(item("shop", "b", {"app": "web"}))
    assert index.names("chat", parse_selector(selector)) == ()
    assert index.names(None, parse_selector(selector)) == ()
