from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.lists.items import ItemsError, JsonList, start_of_items
from adapter.foundation.time.pace import UNPACED

TRICKY = ["", "},{", '"items":[', "]}", "\\", '"', "ü", '},{"metadata":{', "[]"]

texts = st.sampled_from(TRICKY) | st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


class Item(msgspec.Struct):
    name: str
    rest: Any = None


items_of_lists = st.lists(st.builds(lambda name, rest: {"name": name, "rest": rest}, texts, values), max_size=30)


def decoded(body: bytes, part_bytes: int) -> list[dict[str, Any]]:
    listed = JsonList(body, Item, part_bytes)
    return [{"name": item.name, "rest": item.rest} for part in listed.batches(UNPACED) for item in part]


@given(
    items=items_of_lists,
    part_bytes=st.integers(1, 400),
    indent=st.sampled_from([None, 1, 4]),
    before=st.dictionaries(
        texts.filter(lambda key: key not in {"items", "kind", "apiVersion", "metadata"}), values, max_size=2
    ),
    after=st.dictionaries(
        texts.filter(lambda key: key not in {"items", "kind", "apiVersion", "metadata"}), values, max_size=2
    ),
)
def test_the_parts_add_up_to_the_whole_list(
    items: list[dict[str, Any]], part_bytes: int, indent: int | None, before: dict[str, Any], after: dict[str, Any]
) -> None:
    document = {**before, "items": items, **{key: value for key, value in after.items() if key not in before}}
    body = json.dumps(document, indent=indent).encode()
    assert decoded(body, part_bytes) == items


@given(items=items_of_lists, cut=st.integers(1, 200))
def test_a_document_that_ends_early_is_an_error(items: list[dict[str, Any]], cut: int) -> None:
    body = json.dumps({"kind": "List", "items": items}).encode()
    with pytest.raises(ItemsError):
        decoded(body[: max(0, len(body) - cut)], 50)


def test_a_large_list_comes_in_many_parts() -> None:
    items = [{"name": f"pod-{number}", "rest": {"items": [{"name": "}"}, {"name": "},{"}]}} for number in range(1000)]
    listed = JsonList(json.dumps({"items": items, "kind": "List"}).encode(), Item, 2000)
    sizes = [len(part) for part in listed.batches(UNPACED)]
    assert sum(sizes) == 1000
    assert max(sizes) < 50
    assert listed.head.kind == "List"


def test_items_with_different_first_keys_are_still_split() -> None:
    items = [{"rest": 1, "name": "a"} if number % 2 else {"name": "b"} for number in range(1000)]
    sizes = [len(part) for part in JsonList(json.dumps({"items": items}).encode(), Item, 500).batches(UNPACED)]
    assert sum(sizes) == 1000
    assert max(sizes) < 100


@pytest.mark.parametrize("body", [b'{"kind":"PodList","items":null}', b'{"kind":"PodList","items":[]}'])
def test_an_empty_list_has_no_items(body: bytes) -> None:
    listed = JsonList(body, Item)
    assert [item for part in listed.batches(UNPACED) for item in part] == []
    assert listed.head.kind == "PodList"


def test_the_head_is_read_from_before_and_after_the_items() -> None:
    listed = JsonList(
        b'{"kind":"PodList","items":[{"name":"a"}],"metadata":{"resourceVersion":"5","continue":"x"}}', Item
    )
    assert (listed.prefix.kind, listed.prefix.metadata.resource_version) == ("PodList", "")
    with pytest.raises(RuntimeError, match="not read to their end"):
        _ = listed.head
    assert len(list(listed.batches(UNPACED))) == 1
    assert (listed.head.metadata.resource_version, listed.head.metadata.next_page) == ("5", "x")


@pytest.mark.parametrize(
    ("body", "reason", "line"),
    [
        (b'{"items":[{"name":5}]}', r"Expected `str`, got `int` - at `\$\.items\[\]\.name`", None),
        (b'{"items":[{}]}', "missing required field `name`", None),
        (b'{"items":[\n{"name":"a"},\n{"name"}]}', "malformed", 3),
        (b'{"items":[{"name":"\xff"}]}', "not UTF-8", None),
        (b'{"items":[{"name":"a"}', "not closed", None),
        (b'{"items":[{"name":"a"}]', "truncated", None),
        (b'{"items":[{"name":"a"}]}}', "malformed", 1),
        (b"", "truncated", None),
        (b"[]", "Expected `object`, got `array`", None),
        (b'{"kind":"PodList"}', "no list under the key `items`", None),
        (b'{"kind":"Pod","metadata":{"resourceVersion":"5"}}', "no list under the key `items`", None),
        (b'{"items":{"a":1}}', "no list under the key `items`", None),
        (b'{"a":[' + b'{"items":[]},' * 20 + b'{}],"items":[{"name":"a"}]}', "no list under the key `items`", None),
        (b'{"items":[{"name":"a","rest":' + b"[" * 5000 + b"]" * 5000 + b"}]}", "nested too deeply", None),
        (b'{"kind":' + b"[" * 5000 + b"]" * 5000 + b',"items":[]}', "got `array`|nested too deeply", None),
    ],
)
def test_the_error_for_an_unreadable_list_has_the_reason_and_the_line(
    body: bytes, reason: str, line: int | None
) -> None:
    with pytest.raises(ItemsError, match=reason) as raised:
        decoded(body, 5)
    assert raised.value.line == line


@pytest.mark.parametrize(
    "body",
    [
        b'{"spec":{"items":[{"name":"a"}]}}',
        b'{"note":"\\"items\\":[","kind":"Pod"}',
        b'[{"items":[]}]',
        b'{"items":{"a":1}}',
        b"",
    ],
)
def test_a_nested_list_is_not_mistaken_for_the_items(body: bytes) -> None:
    assert start_of_items(body) == -1


@given(items=items_of_lists, bad=st.sets(st.integers(0, 29)), part_bytes=st.integers(1, 400))
def test_unreadable_items_are_left_out_one_by_one(items: list[dict[str, Any]], bad: set[int], part_bytes: int) -> None:
    listed = [None if number in bad else item for number, item in enumerate(items)]
    left_out: list[bytes] = []
    body = json.dumps({"items": listed}).encode()
    found = JsonList(body, Item, part_bytes, lambda content, _: left_out.append(bytes(content)))
    read = [{"name": item.name, "rest": item.rest} for part in found.batches(UNPACED) for item in part]
    assert read == [item for item in listed if item is not None]
    assert left_out == [b"null"] * listed.count(None)
