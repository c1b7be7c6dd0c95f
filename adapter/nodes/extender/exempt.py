"""Which pods no filter may keep from a node."""

from __future__ import annotations

from typing import Final

import msgspec

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
"""From this value on a pod is critical for the node or cluster (`system-cluster-critical`); users cannot set it."""


class _Owner(msgspec.Struct):
    kind: str = ""


class _PodMeta(msgspec.Struct, rename="camel"):
    owner_references: list[_Owner] | None = None


class _PodSpec(msgspec.Struct):
    priority: int | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMeta | None = None
    spec: _PodSpec | None = None


_POD = msgspec.json.Decoder(_Pod)


def is_exempt(pod: bytes) -> bool:
    """Return whether a Pod, as JSON, is one that its node cannot do without. Raises msgspec.MsgspecError.

    A pod of a DaemonSet can run on one node alone: kept from it, the node lacks its network or its log
    collector. A critical pod is to run before all others.
    """
    form = _POD.decode(pod)
    owners = (form.metadata.owner_references if form.metadata else None) or ()
    priority = (form.spec.priority if form.spec else None) or 0
    return priority >= SYSTEM_CRITICAL_PRIORITY or any(owner.kind == "DaemonSet" for owner in owners)
