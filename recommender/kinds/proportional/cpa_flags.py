"""Values of cluster-proportional-autoscaler's command line, accepted and rejected as that program does.

Sources: `cmd/…/options/options.go` and `getScaleTargets` in `k8sclient.go` of that project.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.selectors import Selector, SelectorError, parse_selector
from recommender.decisions.record import TargetReference
from recommender.kinds.proportional.go_json import no_constant

_KINDS: Final = {
    "deployment": ("apps/v1", "Deployment"),
    "replicationcontroller": ("v1", "ReplicationController"),
    "replicaset": ("apps/v1", "ReplicaSet"),
}
_WHITE_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""The characters that Go's strings.TrimSpace removes."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PARAMS_FIX: Final = 'write {"linear": {"nodesPerReplica": 16}}'
_TARGET_FIX: Final = "write deployment/NAME, replicationcontroller/NAME or replicaset/NAME, separated by commas"


class FlagError(ValueError):
    """A value of the command line is rejected; the message says which flag it is, why, and what to do."""


class NamedTarget(NamedTuple):
    """A target as the command line spells it."""

    kind: str
    name: str


def check_target_flag(text: str) -> None:
    """Check the prefix of each target, in any case; raises FlagError."""
    if not text:
        raise FlagError(f"--target is empty: {_TARGET_FIX}")
    for target in _split_at_commas(lower_case(text)):
        kind, slash, _ = target.partition("/")
        if not slash or kind not in _KINDS:
            raise FlagError(f"--target has {shorten(target)!r}: {_TARGET_FIX}")


def parse_targets(text: str) -> tuple[NamedTarget, ...]:
    """Return the targets that a lower-case text names, of any kind; raises FlagError."""
    return tuple(_named_target(part) for part in _split_at_commas(text))


def lower_case(text: str) -> str:
    """Return the text as Go's strings.ToLower does, character by character."""
    return "".join(character.lower()[0] for character in text)


def read_targets(text: str, namespace: str) -> tuple[TargetReference, ...]:
    """Return the targets of `--target` in a namespace; raises FlagError.

    Names become lower case; that program lowers the whole flag. A target without a name is rejected here; that
    program accepts it, and then each poll fails.
    """
    check_target_flag(text)
    named = parse_targets(lower_case(text))
    if not all(target.name for target in named):
        raise FlagError(f"--target has no name behind a kind: {_TARGET_FIX}")
    return tuple(TargetReference(*_KINDS[target.kind], namespace, target.name) for target in named)


def read_node_labels(text: str) -> Selector:
    """Return the selector of `--nodelabels`, in kubectl's syntax; raises FlagError."""
    try:
        return parse_selector(text)
    except SelectorError as e:
        raise FlagError(f"--nodelabels {shorten(text)!r} is not a label selector: {e}: write KEY=VALUE,…") from e


def read_default_params(text: str) -> dict[str, str]:
    """Return the data of the ConfigMap that `--default-params` creates, from mode to JSON; raises FlagError.

    As in that program, only the JSON syntax is checked. The texts are what Go writes for the values: compact JSON with
    sorted keys.
    """
    try:
        parsed = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=no_constant)
        if parsed is None or isinstance(parsed, dict):
            return {_well_formed(mode): _go_json(value) for mode, value in (parsed or {}).items()}
    except (ValueError, RecursionError) as e:
        raise FlagError(f"--default-params is not JSON: {e}: {_PARAMS_FIX}") from e
    raise FlagError(f"--default-params is not an object: {_PARAMS_FIX}")


def _split_at_commas(text: str) -> Sequence[str]:
    return [part.strip(_WHITE_SPACE) for part in text.split(",")]


def _named_target(text: str) -> NamedTarget:
    parts = text.split("/")
    if len(parts) != 2:
        raise FlagError(f"--target has {shorten(text)!r}, which is not one kind and one name: {_TARGET_FIX}")
    return NamedTarget(*parts)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{shorten(text)} is out of range")
    return value


def _go_json(value: Any) -> str:  # noqa: ANN401 - a value of JSON
    """Return what Go's json.Marshal writes for a decoded value."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_go_text(key)}:{_go_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_go_json, value)) + "]"
    if isinstance(value, float):
        return _go_number(value)
    return _go_text(value) if isinstance(value, str) else json.dumps(value)


def _go_text(text: str) -> str:
    quoted = json.dumps(_well_formed(text), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        quoted = quoted.replace(character, f"\\u{ord(character):04x}")
    return quoted


def _well_formed(text: str) -> str:
    """Return the text with everything that is invalid in UTF-8 replaced as Go does."""
    return _SURROGATE.sub("\ufffd", text)


def _go_number(value: float) -> str:
    """Return the shortest text of a float, with an exponent only below 1e-6 and from 1e21 on."""
    text = repr(value)
    if value and not 1e-6 <= abs(value) < 1e21:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}e{int(exponent):+d}"
    return format(Decimal(text), "f").removesuffix(".0")
