"""The priority expander, and its configuration as Cluster Autoscaler reads it from a ConfigMap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.tree import DocumentError, problems_within
from adapter.foundation.objects.regex import BadPatternError, compile_pattern
from recommender.kinds.cluster_size.expanders.expander_context import Kept, Priorities, names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.documents.tree import Node
    from adapter.foundation.objects.regex import Pattern
    from recommender.kinds.cluster_size.estimator.estimate_model import ExpansionOption
    from recommender.kinds.cluster_size.expanders.expander_context import ExpanderContext

CONFIG_MAP_KEY: Final = "priorities"
"""Key of the ConfigMap `cluster-autoscaler-priority-expander` that holds the YAML text."""
_LEAST: Final = -1
"""Lower priorities are never chosen, as in `expander/priority`."""


class PrioritiesError(ValueError):
    """Priorities cannot be used; the message says where and why."""


def parse_priorities(text: str, file: str) -> dict[int, tuple[str, ...]]:
    """Return patterns by priority from the YAML text of the ConfigMap, `{INTEGER: [PATTERN, ...]}`.

    `file` names the text in messages. Raises PrioritiesError, also for a pattern that RE2 refuses: as in Cluster
    Autoscaler, one fault makes the whole text unusable.
    """
    try:
        root = load_documents(text, file).root
        if root is None or root.is_null:
            raise PrioritiesError(f"{file}: it is empty: write `{{10: [PATTERN]}}`")
        wrong = next(problems_within(root), None)
        if wrong is not None:
            raise PrioritiesError(str(wrong))
        parsed = {
            _number(entry.key.value, entry.key): tuple(item.text() for item in _items(entry.value))
            for entry in root.mapping().entries
        }
    except DocumentError as error:
        raise PrioritiesError(str(error)) from error
    compile_priorities(parsed, file)
    return parsed


def _items(node: Node) -> tuple[Node, ...]:
    return () if node.is_null else node.sequence()


def _number(text: str, node: Node) -> int:
    try:
        return int(text, 10)
    except ValueError:
        raise DocumentError(node.problem(f"{text!r} is not a priority", "write an integer")) from None


def compile_priorities(priorities: Mapping[int, Sequence[str]], file: str) -> Priorities:
    """Return the priorities with their patterns compiled. Raises PrioritiesError for a pattern that RE2 refuses."""
    compiled: list[tuple[int, tuple[Pattern, ...]]] = []
    for number in sorted(priorities, reverse=True):
        try:
            compiled.append((number, tuple(compile_pattern(text) for text in priorities[number])))
        except BadPatternError as error:
            raise PrioritiesError(f"{file}: a pattern of priority {number} cannot be used: {error}") from error
    return Priorities(tuple(compiled))


def highest_priority(options: Sequence[ExpansionOption], context: ExpanderContext) -> Kept:
    """Keep the options whose groups have the highest priority; groups without any are dropped.

    All are kept if there are no priorities, or if no group has one.
    """
    if context.priorities is None:
        problem = context.priorities_problem or "no priorities are configured"
        return Kept(tuple(options), f"all groups stay, because {problem}")
    numbers = [context.priorities.of(option.group.name) for option in options]
    highest = max((number for number in numbers if number is not None), default=_LEAST - 1)
    if highest < _LEAST:
        return Kept(tuple(options), "no pattern matches the name of a group, so all of them stay")
    kept = tuple(option for option, number in zip(options, numbers, strict=True) if number == highest)
    unmatched = [option for option, number in zip(options, numbers, strict=True) if number is None]
    dropped = f"; left out, because they have no priority: {names(unmatched)}" if unmatched else ""
    return Kept(kept, f"priority {highest}, the highest{dropped}")
