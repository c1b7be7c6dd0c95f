"""Memories as they were stored before schema version 5. They are read once, and written in the current form. Pure.

These versions had one form with fields for all kinds: `parameters` and `rungs` for proportional, `policy` with numbers
by name for predictive, and `clusterSize`. Version 1 had neither `policy` nor `clusterSize`, version 2 had no
`clusterSize`, and version 3 had no `known`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from recommender.decisions.memory import Count, KindMemory, LastValue, Memory, Time
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.memory import Absence, AskedSize, BackOff, ClusterSizeMemory, RequestedNodes
from recommender.kinds.predictive.policy.former_memory import memory_of
from recommender.kinds.proportional.memory import LastParameters, ProportionalMemory

FORMER_VERSIONS: Final = range(1, 5)


class _Last(msgspec.Struct, forbid_unknown_fields=True):
    replicas: Count
    decided: float
    confirmed: float


class _ClusterSize(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    unneeded_since: dict[str, Time] = {}
    last_scale_up: Time | None = None
    last_delete: Time | None = None
    last_failure: Time | None = None
    requested: dict[str, RequestedNodes] = {}
    asked: dict[str, AskedSize] = {}
    back_offs: dict[str, BackOff] = {}
    sizes: dict[str, Count] = {}
    decided: Time | None = None
    confirmed: Time | None = None
    changes: list[Time] = []
    absences: tuple[Absence, ...] = ()


class _Memory(msgspec.Struct, forbid_unknown_fields=True, rename={"cluster_size": "clusterSize"}):
    last: _Last | None
    changes: list[float]
    parameters: LastParameters | None
    rungs: dict[str, int]
    policy: dict[str, float] = {}
    cluster_size: _ClusterSize | None = None
    known: dict[str, Count] = {}


class _Target(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    namespace: str
    name: str
    memory: _Memory


class _Whole(_Memory):
    targets: list[_Target] = []


_WHOLE = decoder_of(_Whole)


def decode_former(content: msgspec.Raw) -> Memory:
    """Return the memory in a content of a former version. Raises msgspec.DecodeError."""
    whole = _WHOLE.decode(content)
    by_target = {
        TargetReference(each.api_version, each.kind, each.namespace, each.name): _memory(each.memory)
        for each in whole.targets
    }
    memory = _memory(whole)
    return replace(memory, by_target=by_target)


def _memory(content: _Memory) -> Memory:
    last, size = content.last, content.cluster_size
    if size is not None:
        is_known = size.decided is not None and size.confirmed is not None
        sized = LastValue(None, size.decided or 0.0, size.confirmed or 0.0) if is_known else None
        return Memory(sized, tuple(size.changes), _size_memory(size), content.known)
    own: KindMemory | None = memory_of(content.policy) if content.policy else None
    if content.parameters is not None or content.rungs:
        own = ProportionalMemory(content.parameters, content.rungs)
    value = None if last is None else LastValue(last.replicas, last.decided, last.confirmed)
    return Memory(value, tuple(content.changes), own, content.known)


def _size_memory(size: _ClusterSize) -> ClusterSizeMemory:
    return ClusterSizeMemory(
        unneeded_since=size.unneeded_since,
        last_scale_up=size.last_scale_up,
        last_delete=size.last_delete,
        last_failure=size.last_failure,
        requested=size.requested,
        asked=size.asked,
        back_offs=size.back_offs,
        sizes=size.sizes,
        absences=size.absences,
    )
