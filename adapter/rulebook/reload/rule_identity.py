"""Whether an entry of a rule file, even a broken one, says that it is another rule than a former one.

The place in the file would be enough if rules were never replaced. But a rule may have been removed on purpose, for
example because it leaked data, and another written in its place. So what an entry names counts: its series, its metric,
and a query that spells its series out. What most rules have in common, `<<.Series>>` and patterns of names, tells
nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from adapter.rulebook.plans.tree import UnreadableQueryError
from adapter.rulebook.series import NotASelectorError, parse_series_query

if TYPE_CHECKING:
    from adapter.rulebook.model import RefusedRule, Rule


@dataclass(frozen=True, slots=True)
class RuleIdentity:
    """What identifies a rule; None for a part that is broken, omitted, or the same for many rules."""

    selector: str | None
    """Its `seriesQuery`."""
    series: str | None
    """The name of the series that it selects."""
    name: str | None
    """The name of its metric, where it has one for all its series."""
    query: str | None
    """Its query, where that names its series itself."""

    def may_be(self, other: RuleIdentity) -> bool:
        """Return whether the two may be the same rule: a part is equal, or this one has no part at all."""
        told = {key: value for key, value in self._told() if value is not None}
        return not told or any(told.get(key) == value for key, value in other._told() if value is not None)

    def _told(self) -> list[tuple[str, str | None]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def identity_of(rule: Rule) -> RuleIdentity:
    """Return what identifies a valid rule."""
    return _identity(rule.series_query, rule.naming.template, rule.metrics_query.text)


def identity_of_refused(rule: RefusedRule) -> RuleIdentity:
    """Return what still identifies a refused rule."""
    said = _mapping(json.loads(rule.said) if rule.said else None)
    return _identity(rule.series_query, _mapping(said.get("name")).get("as"), said.get("metricsQuery"))


def _identity(selector: str, name: Any, query: Any) -> RuleIdentity:  # noqa: ANN401 - whatever stands in a broken entry
    series = _series(selector)
    return RuleIdentity(
        selector=selector.strip() if series is not None else None,
        series=series or None,
        name=name if isinstance(name, str) and name and "$" not in name else None,
        query=query.strip() if isinstance(query, str) and query.strip() and ".Series" not in query else None,
    )


def _series(selector: str) -> str | None:
    """Return the name of the selected series, empty where it is left open; None for what is no selector."""
    try:
        return parse_series_query(selector).name or ""
    except (NotASelectorError, UnreadableQueryError):
        return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
