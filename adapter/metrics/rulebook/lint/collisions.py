"""Warnings about rules that provide metrics of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.rulebook.discover import static_metrics
from adapter.metrics.rulebook.findings import Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.lint.rule_positions import Place
    from adapter.metrics.rulebook.model import Api, Finding, Rule


def collisions(rules: Sequence[Rule], places: Mapping[str, Place], resolve: ResolveResource) -> Iterator[Finding]:
    """Yield a finding for each rule that certainly loses a metric to a later one: the last in the files wins."""
    winners: dict[tuple[Api, str], Rule] = {}
    makers: dict[tuple[object, ...], Rule] = {}
    for rule in reversed(rules):
        names = {metric.qualified for metric in static_metrics(rule, resolve)}
        wanted = _without_by_products(names)
        taken = {name: winner for name in wanted if (winner := winners.get((rule.api, name))) is not None}
        same = makers.get(_making(rule))
        if taken:
            yield _collision_finding(places[rule.id], ", ".join(sorted(taken)), taken[max(taken)])
        elif same is not None:
            yield _collision_finding(places[rule.id], "every metric", same)
        winners.update({(rule.api, name): rule for name in names - taken.keys()})
        makers.setdefault(_making(rule), rule)


def _without_by_products(names: set[str]) -> set[str]:
    """Return the names without those on namespaces, if the rule also describes objects within namespaces.

    Such a rule serves a metric on namespaces only because its series have a namespace. Rules for several kinds of
    objects may well share a name, as `recommended_replicas` does, and nobody asks for it on the namespace.
    """
    return {name for name in names if not name.startswith("namespaces/")} or names


def _collision_finding(place: Place, what: str, winner: Rule) -> Finding:
    message = (
        f"{what} of this rule is also provided by {winner.id} ({winner.file}:{winner.line}), which comes later and wins"
    )
    return place.warning(Code.NAME_COLLISION, (), message, "give one of them another name, or remove it")


def _making(rule: Rule) -> tuple[object, ...]:
    """Return the parts of a rule that determine which metrics it provides."""
    return (
        rule.api,
        rule.series_query,
        rule.series_filters,
        rule.naming.pattern.text,
        rule.naming.template,
        rule.resources,
    )
