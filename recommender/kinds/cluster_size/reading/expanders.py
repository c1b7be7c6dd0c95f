"""The shapes of `expander` and `priorities`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import NAMESPACE, OBJECT_NAME, TEXTS_MAY_BE_EMPTY
from adapter.foundation.documents.sections import Key, Section
from adapter.foundation.documents.shapes import ListOf, OneOf, Scalar, WrongValueError
from adapter.foundation.documents.tree import ScalarNode, SequenceNode, shorten
from adapter.foundation.objects.regex import BadPatternError, compile_pattern
from recommender.kinds.cluster_size.expanders.chain import EXPANDERS, expander_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem

PRIORITY: Final = "priority"
_NAMESPACE, _NAME = "kube-system", "cluster-autoscaler-priority-expander"
_WHAT_TO_WRITE: Final = "write whole numbers as keys, such as 10: [spot-.*], or configMap: {namespace, name}"


@dataclass(frozen=True, slots=True)
class PrioritySource:
    """The source of the groups' priorities: the file, a ConfigMap, or neither."""

    by_number: Mapping[int, tuple[str, ...]] | None = None
    config_map: tuple[str, str] | None = None


PEERS_PRIORITIES: Final = PrioritySource(config_map=(_NAMESPACE, _NAME))


def _expander(name: str) -> str:
    if "," in name:
        fix = f"write a list: [{', '.join(part.strip() for part in name.split(','))}]"
        raise WrongValueError(f"{shorten(name)!r} names several expanders in one string", shorten(fix, 160))
    _chain([name])
    return name


def _chain(names: list[str]) -> tuple[str, ...]:
    for problem in expander_problems(names):
        message, _, fix = problem.rpartition(": ")
        raise WrongValueError(message, fix)
    return tuple(names)


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except BadPatternError as error:
        raise WrongValueError(f"{shorten(text)!r} is not a regular expression: {error}") from None
    return text


def _priority(text: str) -> int:
    if re.fullmatch("-?[0-9]{1,9}", text) is None:
        raise ValueError(text)
    return int(text)


def _config_map(namespace: str = _NAMESPACE, name: str = _NAME) -> tuple[str, str]:
    return namespace, name


def _priorities(others: Mapping[int, tuple[str, ...]], config_map: tuple[str, str] | None = None) -> PrioritySource:
    return PrioritySource(None if config_map else others, config_map)


def _check(given: Given) -> Iterator[DocumentProblem]:
    if not given.node.entries:
        yield given.node.problem("`priorities` is empty", "write a number with patterns, such as 10: [spot-.*]")
    if given.has("configMap") and len(given.node.entries) > 1:
        yield given.node.problem("`configMap` cannot be combined with priorities of the file", "remove one of them")


_EXPANDER: Final = Scalar(
    "an expander", f"write one of {', '.join(EXPANDERS)}", _expander, {"type": "string", "enum": list(EXPANDERS)}
)
EXPANDER: Final = OneOf(
    {
        ScalarNode: _EXPANDER.then(lambda name: (name,)),
        SequenceNode: ListOf(_EXPANDER, _chain, ("`expander` is empty", "write least-waste, or remove the key")),
    }
)
PRIORITIES: Final = Section(
    "priorities",
    _priorities,
    (
        Key(
            "configMap",
            Section(
                "priorities.configMap",
                _config_map,
                (
                    Key("namespace", NAMESPACE, "Namespace of the ConfigMap."),
                    Key("name", OBJECT_NAME, "Name of the ConfigMap."),
                ),
            ),
            "A ConfigMap of Cluster Autoscaler's priority expander.",
        ),
    ),
    _check,
    (Scalar("a priority", _WHAT_TO_WRITE, _priority, {}), ListOf(TEXTS_MAY_BE_EMPTY.then(_pattern))),
)
