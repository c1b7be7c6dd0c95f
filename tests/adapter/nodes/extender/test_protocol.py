from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.nodes.extender.protocol import (
    LARGEST_NAMES_BYTES,
    ExtenderProtocolError,
    decode_args,
    encode_filter_result,
    encode_priorities,
)

POD = {"metadata": {"name": "web-1"}, "spec": {"aFieldOfTomorrow": [1, {"x": None}]}}


def body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"a": "ü"}}, "status": {"capacity": {"cpu": "4"}}}


@pytest.mark.parametrize(
    ("fields", "names", "has_objects"),
    [
        ({"Pod": POD, "Nodes": None, "NodeNames": ["b", "a"]}, ("b", "a"), False),
        ({"pod": POD, "nodenames": ["a"]}, ("a",), False),
        ({"POD": POD, "NODENAMES": []}, (), False),
        ({"Pod": POD, "Nodes": None, "NodeNames": None}, (), False),
        ({"Pod": POD}, (), False),
        ({"Pod": POD, "NodeNames": ["a", "b", "a"]}, ("a", "b"), False),
        ({"Pod": POD, "Nodes": {"metadata": {}, "items": [node("a"), node("b")]}, "NodeNames": None}, ("a", "b"), True),
        ({"Pod": POD, "Nodes": {"metadata": {}, "items": None}}, (), True),
        ({"Pod": POD, "Nodes": {"items": []}}, (), True),
        ({"Pod": POD, "NodeNames": ["a"], "Tomorrow": {"x": 1}}, ("a",), False),
        ({"Pod": POD, "NodeNames": [f"node-{number}" for number in range(5000)]}, None, False),
    ],
)
def test_all_forms_that_the_scheduler_may_send_are_read(
    fields: dict[str, object], names: tuple[str, ...] | None, *, has_objects: bool
) -> None:
    args = decode_args(body(**fields))
    assert args.names == (names if names is not None else tuple(f"node-{number}" for number in range(5000)))
    assert (args.nodes is not None) is has_objects
    assert json.loads(args.pod) == POD


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"", "the body is not"),
        (b'{"Pod":', "the body is not"),
        (b"null", "the body is not"),
        (b"[]", "the body is not"),
        (b"{}", "the body has no Pod"),
        (b'{"Pod":null,"NodeNames":[]}', "the body has no Pod"),
        (b'{"Pod":{},"NodeNames":[1]}', "NodeNames is not"),
        (b'{"Pod":{},"NodeNames":"a"}', "NodeNames is not"),
        (b'{"Pod":{},"NodeNames":["' + LARGEST_NAMES_BYTES * b"a" + b'"]}', "NodeNames has 8388612 bytes: at most"),
        # Refused by its end: it is not read, or else its beginning would be complained about.
        (b'["' + 11 * 2**20 * b"a" + b'"]} \n', "NodeNames is too large: at most 8388608 bytes"),
        (b'{"Pod":{},"NodeNames":["\xff"]}', "NodeNames is not"),
        (b'{"Pod":{},"Nodes":[]}', "Nodes is not"),
        (b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":1}}]}}', "Nodes.items[0] is not"),
        (b'{"Pod":' + b"[" * 100_000, "the body is not"),
    ],
)
def test_a_broken_body_is_refused_with_the_place(sent: bytes, problem: str) -> None:
    with pytest.raises(ExtenderProtocolError) as error:
        decode_args(sent)
    assert str(error.value).startswith(problem)


@settings(max_examples=50)
@given(st.binary(max_size=60) | st.lists(st.none() | st.text(max_size=9), max_size=3).map(msgspec.json.encode))
def test_any_other_body_is_refused(sent: bytes) -> None:
    with pytest.raises(ExtenderProtocolError):
        decode_args(sent)


def test_names_are_answered_with_names() -> None:
    args = decode_args(body(Pod=POD, NodeNames=["a", "b", "c"]))
    assert json.loads(encode_filter_result(args, {"b": "hot"})) == {
        "Nodes": None,
        "NodeNames": ["a", "c"],
        "FailedNodes": {"b": "hot"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_nodes_are_answered_with_the_same_nodes() -> None:
    args = decode_args(body(Pod=POD, Nodes={"metadata": {}, "items": [node("a"), node("b")]}))
    answer = json.loads(encode_filter_result(args, {"a": "hot"}))
    assert answer["Nodes"] == {"metadata": {}, "items": [node("b")]}
    assert (answer["NodeNames"], answer["FailedNodes"]) == (None, {"a": "hot"})


def test_a_node_without_a_name_does_not_affect_others() -> None:
    args = decode_args(body(Pod=POD, Nodes={"items": [{}, {"metadata": None}, node("b")]}))
    assert args.names == ("", "b")


def test_scores_are_a_bare_array() -> None:
    assert encode_priorities(["a", "b"], [0, 10]) == b'[{"Host":"a","Score":0},{"Host":"b","Score":10}]\n'
    assert encode_priorities([], []) == b"[]\n"
