from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.memory import Absence, BackOff, ClusterSizeMemory
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory
from recommender.kinds.proportional.memory import LastParameters, ProportionalMemory, restore_memory
from recommender.running.memory.memory_document import SCHEMA_VERSION, MemoryDocumentError, decode_memory, encode_memory
from recommender.running.memory.store_protocol import NAME_PREFIX, StoredMemory, stored_name
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import ObjectStore

MEMORY = Memory(
    last=LastValue(11, 1000.25, 1010.5),
    changes=(900.0, 1000.25),
    own=ProportionalMemory(LastParameters("linear", '{"coresPerReplica": null}', "4711"), {"nodes": 3, "cores": 2}),
)
TIMES = st.floats(0.0, 253_402_300_799.0)
AMOUNTS = st.floats(0.0, 1e15)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PROPORTIONAL = st.builds(
    ProportionalMemory,
    st.none() | st.builds(LastParameters, TEXTS, TEXTS, TEXTS),
    st.dictionaries(TEXTS, st.integers(-(2**31), 2**31), max_size=4),
)
PREDICTIVE = st.builds(
    PolicyMemory,
    time=st.none() | TIMES,
    capacity=st.none() | st.floats(0, 2**31 - 1),
    desired_sizes=st.lists(st.tuples(TIMES, st.integers(0, 2**31 - 1)), max_size=3).map(tuple),
    reconnect=st.builds(ReconnectMemory, st.lists(st.tuples(TIMES, AMOUNTS), max_size=3).map(tuple), st.none() | TIMES),
    sessions=st.builds(SessionMemory, st.lists(st.tuples(TEXTS, AMOUNTS), max_size=3).map(tuple), AMOUNTS, AMOUNTS),
    uid=TEXTS,
)
SIZES = st.builds(
    ClusterSizeMemory,
    unneeded_since=st.dictionaries(TEXTS, TIMES, max_size=2),
    last_scale_up=st.none() | TIMES,
    back_offs=st.dictionaries(TEXTS, st.builds(BackOff, TIMES, AMOUNTS, TIMES, TEXTS), max_size=2),
    sizes=st.dictionaries(TEXTS, st.integers(0, 2**31), max_size=2),
    absences=st.lists(st.builds(Absence, TIMES, TIMES), max_size=2).map(tuple),
)
OF_ONE = st.builds(
    Memory,
    last=st.none() | st.builds(LastValue, st.none() | st.integers(0, 2**31 - 1), TIMES, TIMES),
    changes=st.lists(TIMES, max_size=5).map(tuple),
    own=st.none() | PROPORTIONAL | PREDICTIVE | SIZES,
    known=st.dictionaries(TEXTS, st.integers(0, 2**31), max_size=3),
)
TARGETS = st.builds(TargetReference, TEXTS, TEXTS, TEXTS, TEXTS)
MEMORIES = st.builds(
    lambda memory, by_target: replace(memory, by_target=by_target),
    OF_ONE,
    st.dictionaries(TARGETS, OF_ONE, max_size=3),
)


@settings(max_examples=60)
@given(TEXTS, MEMORIES)
def test_a_memory_is_decoded_as_it_was_encoded(name: str, memory: Memory) -> None:
    assert decode_memory(name, encode_memory(name, memory)) == StoredMemory(memory)


@settings(max_examples=60)
@given(MEMORIES, st.data())
def test_a_damaged_document_is_refused_or_means_the_same(memory: Memory, data: st.DataObject) -> None:
    text = encode_memory("web", memory)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = data.draw(st.sampled_from([text[:at], text[:at] + "7" + text[at + 1 :], text[:at] + text[at + 1 :]]))
    try:
        found = decode_memory("web", damaged)
    except MemoryDocumentError:
        return
    assert found.memory == memory


@given(
    st.text()
    | st.sampled_from(["", "null", "{}", "[]", "[" * 100_000, '{"kind": 1}', '"\\ud800"', "NaN", "1e999"])
    | st.dictionaries(st.text(max_size=9), st.none() | st.integers() | st.text(max_size=9), max_size=4).map(json.dumps)
)
def test_text_that_is_not_a_memory_document_is_refused(text: str) -> None:
    with pytest.raises(MemoryDocumentError):
        decode_memory("web", text)


def test_a_memory_has_the_same_text_whatever_the_order_of_its_rungs() -> None:
    own = restore_memory(MEMORY.own)
    turned = replace(MEMORY, own=ProportionalMemory(own.parameters, {"cores": 2, "nodes": 3}))
    assert encode_memory("web", turned) == encode_memory("web", MEMORY)


def test_a_document_of_a_newer_schema_is_refused_with_its_version() -> None:
    newer = json.dumps({**json.loads(encode_memory("web", MEMORY)), "schemaVersion": SCHEMA_VERSION + 1, "more": {}})
    with pytest.raises(MemoryDocumentError, match="schema version 6, and this program reads up to 5"):
        decode_memory("web", newer)


def test_holds_times_and_sizes_are_fields_of_the_document() -> None:
    own = PolicyMemory(
        time=1e9,
        capacity=2.5,
        desired_sizes=((1e9, 3),),
        reconnect=ReconnectMemory(((1e9, 3e9),), held_until=1e9 + 60),
        uid="b7a1",
        is_complete=True,
    )
    document = json.loads(encode_memory("web", Memory(own=own)))
    assert document["uids"] == ["b7a1"]
    assert document["memory"]["own"] == {
        "type": "predictive",
        "time": 1e9,
        "capacity": 2.5,
        "wishes": [[1e9, 3]],
        "reconnect": {"loads": [[1e9, 3e9]], "heldUntil": 1e9 + 60},
    }


class FormerPolicyMemory(msgspec.Struct, forbid_unknown_fields=True, rename="camel", tag="predictive"):
    """The memory of a predictive target in the first version that wrote schema version 5."""

    time: float | None = None
    capacity: float | None = None
    wishes: tuple[tuple[float, int], ...] = ()
    reconnect: ReconnectMemory = ReconnectMemory()
    sessions: SessionMemory = SessionMemory()


class FormerTarget(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str
    name: str
    memory: FormerMemory


class FormerMemory(msgspec.Struct, forbid_unknown_fields=True):
    """The memories that this version reads."""

    last: dict[str, float] | None = None
    changes: list[float] = []
    own: FormerPolicyMemory | None = None
    known: dict[str, int] = {}
    targets: list[FormerTarget] = []


class FormerDocument(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    schema_version: int
    recommendation: str
    checksum: str
    memory: msgspec.Raw
    shards: int = 0


@settings(max_examples=60)
@given(own=PREDICTIVE, by_target=st.dictionaries(TARGETS, PREDICTIVE, max_size=3), is_complete=st.booleans())
def test_a_former_version_reads_the_memory_of_a_target_with_a_uid(
    own: PolicyMemory, by_target: dict[TargetReference, PolicyMemory], *, is_complete: bool
) -> None:
    """A rollback must not forget capacity and window, or that version would lower sizes at once."""
    own = structs.replace(own, is_complete=is_complete)
    memory = Memory(own=own, by_target={target: Memory(own=each) for target, each in by_target.items()})
    document = msgspec.json.decode(encode_memory("web", memory), type=FormerDocument)
    assert (document.schema_version, document.checksum) == (5, checksum_of(bytes(document.memory)))
    former = msgspec.json.decode(document.memory, type=FormerMemory)
    assert former.own is not None
    assert (former.own.capacity, former.own.wishes) == (own.capacity, own.desired_sizes)
    assert len(former.targets) == len(by_target)
    written = msgspec.json.encode(document)
    assert decode_memory("web", written).memory.own == own.stored, "the UID alone is forgotten"


@pytest.mark.parametrize("uids", [["b7a2"], [], ["b7a1", "c4"]])
def test_edited_uids_are_refused(uids: list[str]) -> None:
    document = json.loads(encode_memory("web", Memory(own=PolicyMemory(uid="b7a1"))))
    content = json.dumps(document | {"uids": uids}, separators=(",", ":"))
    with pytest.raises(MemoryDocumentError, match="UIDs"):
        decode_memory("web", content)


def test_a_uid_for_each_target_is_required() -> None:
    document = json.loads(encode_memory("web", Memory(own=PolicyMemory(uid="b7a1"))))
    uids = ["b7a1", "c4"]
    more = {"uids": uids, "uidsChecksum": checksum_of(json.dumps(uids, separators=(",", ":")).encode())}
    with pytest.raises(MemoryDocumentError, match="UIDs"):
        decode_memory("web", json.dumps(document | more, separators=(",", ":")))


def checksum_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_a_memory_of_an_unknown_kind_is_refused() -> None:
    text = encode_memory("web", MEMORY)
    memory = json.loads(text)["memory"] | {"own": {"type": "lunar"}}
    content = json.dumps(memory, separators=(",", ":"))
    checksum = checksum_of(content.encode())
    with pytest.raises(MemoryDocumentError, match="lunar"):
        decode_memory(
            "web", json.dumps({**json.loads(text), "checksum": checksum, "memory": memory}, separators=(",", ":"))
        )


def test_a_document_of_another_recommendation_is_refused() -> None:
    with pytest.raises(MemoryDocumentError, match="belongs to recommendation 'web'"):
        decode_memory("dns", encode_memory("web", MEMORY))


def test_an_edit_by_hand_is_detected() -> None:
    with pytest.raises(MemoryDocumentError, match="checksum"):
        decode_memory("web", encode_memory("web", MEMORY).replace('"replicas":11', '"replicas":12'))


def test_a_non_finite_time_is_never_stored() -> None:
    with pytest.raises(ValueError, match="not finite"):
        encode_memory("web", replace(MEMORY, changes=(float("nan"),)))


@given(st.text(max_size=300))
def test_every_recommendation_is_stored_under_a_name_that_kubernetes_allows(name: str) -> None:
    ObjectStore().create(
        CONFIG_MAPS, "shop", {"kind": "ConfigMap", "metadata": {"name": stored_name(name)}, "data": {}}
    )


@given(st.text(max_size=20), st.text(max_size=20))
def test_two_recommendations_are_never_stored_under_one_name(one: str, other: str) -> None:
    assert (stored_name(one) == stored_name(other)) == (one == other)


def test_a_valid_name_is_used_unchanged() -> None:
    assert stored_name("coredns") == f"{NAME_PREFIX}coredns"
    assert stored_name("CoreDNS").startswith(f"{NAME_PREFIX}coredns-")
