from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender.decisions.memory import LastParameters, LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.document import (
    SCHEMA_VERSION,
    MemoryDocumentError,
    NewerMemoryError,
    decode_memory,
    encode_memory,
)
from recommender.running.memory.store import NAME_PREFIX, stored_name
from tests.support.apiserver_objects import CONFIG_MAPS, ObjectStore

MEMORY = Memory(
    last=LastValue(11, 1000.25, 1010.5),
    changes=(900.0, 1000.25),
    parameters=LastParameters("linear", '{"coresPerReplica": 2}', "4711"),
    rungs={"nodes": 3, "cores": 2},
)
TIMES = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OF_ONE = st.builds(
    Memory,
    last=st.none() | st.builds(LastValue, st.integers(0, 2**31 - 1), TIMES, TIMES),
    changes=st.lists(TIMES, max_size=5).map(tuple),
    parameters=st.none() | st.builds(LastParameters, TEXTS, TEXTS, TEXTS),
    rungs=st.dictionaries(TEXTS, st.integers(-(2**31), 2**31), max_size=4),
    policy=st.dictionaries(TEXTS, TIMES, max_size=3),
)
TARGETS = st.builds(TargetReference, TEXTS, TEXTS, TEXTS, TEXTS)
MEMORIES = st.builds(
    lambda memory, by_target: replace(memory, by_target=by_target),
    OF_ONE,
    st.dictionaries(TARGETS, OF_ONE, max_size=3),
)


@settings(max_examples=60)
@given(TEXTS, MEMORIES)
def test_a_memory_comes_back_as_it_was(name: str, memory: Memory) -> None:
    assert decode_memory(name, encode_memory(name, memory)) == memory


@settings(max_examples=60)
@given(MEMORIES, st.data())
def test_a_document_that_was_damaged_is_refused_or_means_the_same(memory: Memory, data: st.DataObject) -> None:
    text = encode_memory("web", memory)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = data.draw(st.sampled_from([text[:at], text[:at] + "7" + text[at + 1 :], text[:at] + text[at + 1 :]]))
    try:
        found = decode_memory("web", damaged)
    except MemoryDocumentError:
        return
    assert found == memory


@given(
    st.text()
    | st.sampled_from(["", "null", "{}", "[]", "[" * 100_000, '{"kind": 1}', '"\\ud800"', "NaN", "1e999"])
    | st.dictionaries(st.text(max_size=9), st.none() | st.integers() | st.text(max_size=9), max_size=4).map(json.dumps)
)
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(MemoryDocumentError):
        decode_memory("web", text)


def test_the_same_memory_is_the_same_text_whatever_the_order_of_its_rungs() -> None:
    turned = replace(MEMORY, rungs={"cores": 2, "nodes": 3})
    assert encode_memory("web", turned) == encode_memory("web", MEMORY)


def test_a_document_of_a_newer_schema_is_refused_as_such() -> None:
    newer = json.dumps({**json.loads(encode_memory("web", MEMORY)), "schemaVersion": SCHEMA_VERSION + 1, "more": {}})
    with pytest.raises(NewerMemoryError, match="schema version 4, and this program reads up to 3"):
        decode_memory("web", newer)


def test_a_memory_that_older_versions_know_is_written_as_they_read_it() -> None:
    document = json.loads(encode_memory("web", MEMORY))
    assert document["schemaVersion"] == 1
    assert set(document["memory"]) == {"last", "changes", "parameters", "rungs"}
    assert json.loads(encode_memory("web", replace(MEMORY, policy={"capacity": 4.0})))["schemaVersion"] == 2


def test_a_document_of_another_recommendation_is_refused() -> None:
    with pytest.raises(MemoryDocumentError, match="belongs to recommendation 'web'"):
        decode_memory("dns", encode_memory("web", MEMORY))


def test_an_edit_by_hand_is_noticed() -> None:
    with pytest.raises(MemoryDocumentError, match="checksum"):
        decode_memory("web", encode_memory("web", MEMORY).replace('"replicas":11', '"replicas":12'))


def test_a_time_that_is_not_finite_is_never_stored() -> None:
    with pytest.raises(ValueError, match="not finite"):
        encode_memory("web", replace(MEMORY, changes=(float("nan"),)))


@given(st.text(max_size=300))
def test_every_name_has_a_name_that_kubernetes_allows(name: str) -> None:
    ObjectStore().create(
        CONFIG_MAPS, "shop", {"kind": "ConfigMap", "metadata": {"name": stored_name(name)}, "data": {}}
    )


@given(st.text(max_size=20), st.text(max_size=20))
def test_two_names_are_never_stored_under_one(one: str, other: str) -> None:
    assert (stored_name(one) == stored_name(other)) == (one == other)


def test_a_good_name_is_used_as_it_is() -> None:
    assert stored_name("coredns") == f"{NAME_PREFIX}coredns"
    assert stored_name("CoreDNS").startswith(f"{NAME_PREFIX}coredns-")
