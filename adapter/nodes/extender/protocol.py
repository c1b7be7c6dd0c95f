"""The documents of kube-scheduler's extender protocol (`k8s.io/kube-scheduler/extender/v1`).

Its Go structs have no JSON tags: the keys of the outermost level are capitalised (`Pod`, `Nodes`, `NodeNames`), and
Go's decoder accepts them in any case. The objects inside have the usual keys of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.web.http import json_line

T = TypeVar("T")

LARGEST_BODY_BYTES: Final = 64 * 2**20
"""Largest body with Node objects; 5,000 complete objects take about 63 MB."""
LARGEST_NAMES_BYTES: Final = 8 * 2**20
"""Largest body with names: enough for 32,000 names of the greatest possible length (253 bytes), and for many more names
of usual length. Decoded, they take several times as much memory."""

_LARGEST_POD_BYTES: Final = 2 * 2**20
"""Largest pod: more than an API server stores."""
_TAIL_BYTES: Final = 64

_NULL = b"null"


class ExtenderProtocolError(ValueError):
    """A body that is not an ExtenderArgs document; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """The pod that the scheduler wants to place, and the nodes in question."""

    pod: bytes
    """The Pod as JSON."""
    names: tuple[str, ...]
    """Names in the order of the request, each once: the scheduler adds up repeated scores."""
    nodes: Mapping[str, msgspec.Raw] | None
    """The Node objects as JSON, by name, if the scheduler sent objects (`nodeCacheCapable: false`)."""


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Metadata(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Metadata | None = None


class _HostPriority(msgspec.Struct, rename="pascal", gc=False):
    """The score of one node. It is an integer: Go cannot decode a fraction here, and would drop the whole list."""

    host: str
    score: int


_FIELDS = decoder_of(dict[str, msgspec.Raw])
_NAMES = decoder_of(list[str])
_NODE_LIST = decoder_of(_NodeList)
_NODE = decoder_of(_Node)


def decode_args(body: bytes | bytearray) -> ExtenderArgs:
    """Return the decoded ExtenderArgs. Raises ExtenderProtocolError."""
    # Names come last, so the end of the body shows whether most of it consists of names. Reading 20 MB of them only to
    # refuse them would block the whole process for 30 ms.
    if len(body) > LARGEST_NAMES_BYTES + _LARGEST_POD_BYTES and bytes(body[-_TAIL_BYTES:]).rstrip().endswith(b'"]}'):
        raise ExtenderProtocolError(f"NodeNames is too large: at most {LARGEST_NAMES_BYTES} bytes are read")
    found = _decode_document(_FIELDS, body, "the body")
    # Views, since the nodes may be 60 MB.
    fields = {name.lower(): raw for name, raw in found.items() if memoryview(raw) != _NULL}
    if "pod" not in fields:
        raise ExtenderProtocolError("the body has no Pod: send ExtenderArgs as kube-scheduler does")
    pod = bytes(fields["pod"])
    if "nodenames" in fields:
        size = len(memoryview(fields["nodenames"]))
        if size > LARGEST_NAMES_BYTES:
            raise ExtenderProtocolError(f"NodeNames has {size} bytes: at most {LARGEST_NAMES_BYTES} are read")
        names = _decode_document(_NAMES, fields["nodenames"], "NodeNames")
        return ExtenderArgs(pod, tuple(dict.fromkeys(names)), None)
    listed = _decode_document(_NODE_LIST, fields["nodes"], "Nodes").items or [] if "nodes" in fields else None
    if listed is None:
        return ExtenderArgs(pod, (), None)
    nodes = {_name_of(item, index): item for index, item in enumerate(listed)}
    return ExtenderArgs(pod, tuple(nodes), nodes)


def encode_filter_result(args: ExtenderArgs, failed: Mapping[str, str]) -> bytes:
    """Return ExtenderFilterResult: the nodes that did not fail, in the form in which they were sent.

    No node is ever reported as unresolvable: load disappears with pods, so preemption may help.
    """
    accepted = [name for name in args.names if name not in failed] if failed else args.names
    answer: dict[str, object] = {"Nodes": None, "NodeNames": accepted, "FailedNodes": failed}
    if args.nodes is not None:
        answer["Nodes"] = {"metadata": {}, "items": [args.nodes[name] for name in accepted]}
        answer["NodeNames"] = None
    return json_line(answer | {"FailedAndUnresolvableNodes": {}, "Error": ""})


def encode_priorities(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """Return HostPriorityList, a bare array of the names and their scores."""
    return json_line(list(map(_HostPriority, names, scores)))


def _name_of(node: msgspec.Raw, index: int) -> str:
    found = _decode_document(_NODE, node, f"Nodes.items[{index}]").metadata
    return found.name if found else ""


def _decode_document(decoder: msgspec.json.Decoder[T], document: bytes | bytearray | msgspec.Raw, place: str) -> T:
    try:
        return decoder.decode(document)
    # Deeply nested documents end in a RecursionError, and invalid UTF-8 in a UnicodeError.
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as e:
        raise ExtenderProtocolError(f"{place} is not what kube-scheduler sends: {e}") from e
