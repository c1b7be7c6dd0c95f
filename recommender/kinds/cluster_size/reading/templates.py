"""The shapes of `template` and `selector` of a node group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.foundation.documents.scalars import LABEL_KEY, LABEL_VALUE, QUANTITY, SELECTOR, TEXTS_MAY_BE_EMPTY
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import ListOf, OneOf, OutOfRangeError, Scalar, WrongValueError
from adapter.foundation.documents.tree import MappingNode, ScalarNode, did_you_mean, nearest_word, shorten
from adapter.foundation.objects.names import label_key_problem
from adapter.foundation.objects.selectors import Operator, Requirement, Selector, parse_selector
from recommender.kinds.cluster_size.model.size_settings import CORES, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.objects.quantities import Quantity

DEFAULT_PODS: Final = 110
"""The number of pods that the kubelet runs unless it is configured otherwise."""
_PODS: Final = "pods"
_STORAGE: Final = "ephemeral-storage"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NANO: Final = 10**9
_EVERYTHING: Final = ("`selector` is empty, so it selects all nodes", "write the labels of the nodes")


Taints: TypeAlias = tuple[tuple[str, str, str], ...]
"""The key, value and effect of each taint."""


@dataclass(frozen=True, slots=True)
class GroupTemplate:
    """The resources, labels and taints of a new node of a group."""

    capacity: Mapping[str, int]
    """CPU in millicores, memory and storage in bytes, others as counts."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Taints = ()


def _selector(text: str) -> Selector:
    selector = parse_selector(text)
    if not selector.requirements:
        raise WrongValueError(*_EVERYTHING)
    return selector


def _label_selector(others: Mapping[str, str]) -> Selector:
    if not others:
        raise WrongValueError(*_EVERYTHING)
    return Selector(tuple(Requirement(key, Operator.EQUALS, (value,)) for key, value in others.items()))


def _taint(key: str, effect: str, value: str = "") -> tuple[str, str, str]:
    if (wrong := label_key_problem(key)) is not None:
        raise WrongValueError(f"{shorten(key)!r} is not a taint key: {wrong}", "write KEY=VALUE:EFFECT")
    if effect not in _EFFECTS:
        fix = did_you_mean(effect, _EFFECTS, f"write one of {', '.join(_EFFECTS)}")
        raise WrongValueError(f"{shorten(effect)!r} is not the effect of a taint", fix)
    return key, value, effect


def _taint_of(text: str) -> tuple[str, str, str]:
    rest, colon, effect = text.rpartition(":")
    key, _, value = (rest if colon else text).partition("=")
    return _taint(key, effect, value)


def _resource(name: str) -> str:
    """Return a resource that a node can have: extended ones have a prefix, such as `nvidia.com/gpu`."""
    if name.startswith("hugepages-") or ("/" in name and label_key_problem(name) is None):
        return name
    meant = None if "gpu" in name.lower() else nearest_word(name, (each.key for each in TEMPLATE.keys))
    fix = f"did you mean {meant!r}?" if meant else ""
    raise WrongValueError(f"the key {shorten(name)!r} is not a resource", fix)


def _positive(amount: Quantity) -> Quantity:
    if amount.nanos == 0:
        raise OutOfRangeError("write what a node of this group has")
    return amount


def _template(
    others: dict[str, Quantity], labels: dict[str, str] | None = None, taints: Taints = (), **known: Quantity
) -> GroupTemplate:
    amounts = {name.replace("_", "-"): amount for name, amount in known.items()} | others
    capacity = {
        name: amount.milli_value() if name == CORES else amount.nanos // _NANO for name, amount in amounts.items()
    }
    return GroupTemplate({_PODS: DEFAULT_PODS, **capacity}, labels or {}, taints)


_LABELS: Final = mapping_of("labels", LABEL_KEY, LABEL_VALUE)
_TAINT: Final = Section(
    "taints",
    _taint,
    (
        Key("key", TEXTS_MAY_BE_EMPTY, "Key of the taint.", "dedicated"),
        Key("value", TEXTS_MAY_BE_EMPTY, "Value of the taint."),
        Key("effect", TEXTS_MAY_BE_EMPTY, "NoSchedule, PreferNoSchedule or NoExecute.", "NoSchedule"),
    ),
)
_SOME: Final = QUANTITY.then(_positive)
SELECTOR_OR_LABELS: Final = OneOf(
    {
        MappingNode: Section("selector", _label_selector, others=(LABEL_KEY, LABEL_VALUE)),
        ScalarNode: SELECTOR.then(_selector),
    }
)
"""A mapping such as `{pool: a}`, or a text as for kubectl."""
TEMPLATE: Final = Section(
    "template",
    _template,
    (
        Key(CORES, _SOME, "Cores of a new node.", "4"),
        Key(MEMORY, _SOME, "Memory of a new node.", "16Gi"),
        Key(_PODS, _SOME, "Pods that it can run, 110 without the key."),
        Key(_STORAGE, QUANTITY, "Ephemeral storage of a new node."),
        Key("labels", _LABELS, "Labels in addition to those that the selector requires."),
        Key(
            "taints",
            ListOf(OneOf({ScalarNode: TEXTS_MAY_BE_EMPTY.then(_taint_of), MappingNode: _TAINT})),
            "Taints, each as in a Node or as KEY=VALUE:EFFECT.",
        ),
    ),
    others=(
        Scalar("a resource", "write an extended resource such as nvidia.com/gpu, or remove it", _resource, {}),
        QUANTITY,
    ),
)
