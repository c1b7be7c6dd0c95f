"""The stores of counts equal a naive count of what was put and removed, and call `changed` only if a count changes."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.cluster.forms.objects import NameForm, NameMeta, SliceForm
from adapter.foundation.cluster.stores.object_counts import AddressStore, NameStore
from tests.support.cluster_objects import endpoint, slice_object

NAMESPACES = ("a", "b")
Slice: TypeAlias = "tuple[str, tuple[str, ...]]"
"""A Service and its ready addresses."""

keys = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(["x", "y", "z"]))
slices = st.tuples(st.sampled_from(["web", "api"]), st.lists(st.sampled_from(["1", "2", "3"]), max_size=3).map(tuple))


def slice_form(namespace: str, name: str, content: Slice) -> SliceForm:
    service, addresses = content
    endpoints = [endpoint(address) for address in addresses] + [endpoint("9", ready=False)]
    return msgspec.convert(slice_object(name, namespace, service, endpoints), SliceForm)


def addresses_in(objects: dict[tuple[str, str], Slice], namespace: str) -> int:
    found = {
        (space, service, address)
        for (space, _), (service, addresses) in objects.items()
        for address in addresses
        if namespace in {"", space}
    }
    return len(found)


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "relist"]), keys, slices), max_size=30))
def test_ready_addresses_equal_a_naive_count(steps: list[tuple[str, tuple[str, str], Slice]]) -> None:
    changes: list[None] = []
    store = AddressStore(lambda: changes.append(None))
    objects: dict[tuple[str, str], Slice] = {}
    for step, key, content in steps:
        before = [addresses_in(objects, namespace) for namespace in NAMESPACES]
        seen = len(changes)
        match step:
            case "put":
                objects[key] = content
                store.put(slice_form(*key, content))
            case "remove":
                objects.pop(key, None)
                store.remove(*key)
            case _:
                objects = {key: content}
                replacement = store.replacement()
                replacement.put(slice_form(*key, content))
                replacement.commit()
        now = [addresses_in(objects, namespace) for namespace in NAMESPACES]
        assert [store.count(namespace) for namespace in ("", *NAMESPACES)] == [sum(now), *now]
        assert len(store) == len(objects)
        assert len(changes) - seen == (now != before)


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "relist"]), keys), max_size=30))
def test_object_counts_equal_a_naive_count(steps: list[tuple[str, tuple[str, str]]]) -> None:
    changes: list[None] = []
    store = NameStore(lambda: changes.append(None))
    objects: set[tuple[str, str]] = set()
    for step, key in steps:
        before = sorted(namespace for namespace, _ in objects)
        seen = len(changes)
        form = NameForm(NameMeta(name=key[1], namespace=key[0]))
        match step:
            case "put":
                objects.add(key)
                store.put(form)
            case "remove":
                objects.discard(key)
                store.remove(*key)
            case _:
                objects = {key}
                replacement = store.replacement()
                replacement.put(form)
                replacement.commit()
        now = sorted(namespace for namespace, _ in objects)
        assert [store.count(namespace) for namespace in ("", *NAMESPACES)] == [
            len(now),
            *(now.count(namespace) for namespace in NAMESPACES),
        ]
        assert len(store) == len(objects)
        assert len(changes) - seen == (now != before)
