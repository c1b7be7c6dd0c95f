"""Finds the selectors that may match some labels without evaluating each of them.

A selector that demands a value of a label is found by that value; all others are evaluated. So selectors of workloads,
each of which names its own pods, cost as little as if there were no others.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from adapter.foundation.objects.requirements import Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.objects.requirements import Requirement
    from adapter.foundation.objects.selectors import Selector

T = TypeVar("T")
Label: TypeAlias = tuple[str, str]
_IndexKey: TypeAlias = "tuple[str | None, Label | None]"
"""A namespace, None for any; and a label, None for any labels."""

_MOST_INDEX_KEYS: Final = 8
"""A selector that would have more index keys than this has only one, and is evaluated more often."""
_DEMANDS: Final = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})


def selective_requirement(selector: Selector) -> Requirement | None:
    """Return a requirement that only few values of a label satisfy; None if the selector has none."""
    few = [each for each in selector.requirements if each.operator in _DEMANDS and len(each.values) <= _MOST_INDEX_KEYS]
    # The last of equal ones is used: keys that many workloads share, such as app.kubernetes.io/component, are often
    # first.
    return min(reversed(few), key=lambda each: len(each.values), default=None)


class SelectorIndex(Generic[T]):
    """An index of items that have a selector of pods in some namespaces, in the order in which they were added."""

    def __init__(self) -> None:
        self._places: defaultdict[_IndexKey, list[T]] = defaultdict(list)

    def add(self, item: T, selector: Selector, namespaces: frozenset[str] | None) -> None:
        """Add an item under the keys by which it is found for all labels that its selector matches.

        `namespaces` is None for any.
        """
        for place in index_keys_of(selector, namespaces):
            self._places[place].append(item)

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield the items that may match the labels of a pod of a namespace, each at least once."""
        found = self._places
        for where in (namespace, None):
            yield from found.get((where, None), ())
            for label in labels.items():
                yield from found.get((where, label), ())


def index_keys_of(selector: Selector, namespaces: frozenset[str] | None) -> tuple[_IndexKey, ...]:
    """Return the index keys of a selector of pods in some namespaces."""
    demand = selective_requirement(selector)
    labels: tuple[Label | None, ...] = (None,) if demand is None else tuple((demand.key, one) for one in demand.values)
    where: tuple[str | None, ...] = (None,) if namespaces is None else tuple(sorted(namespaces))
    if len(where) * len(labels) > _MOST_INDEX_KEYS:
        where = (None,)
    return tuple((namespace, label) for namespace in where for label in labels)
