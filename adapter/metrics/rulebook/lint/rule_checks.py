"""Warnings about policy keys that cannot be satisfied or may hide missing data, and about rules with the same names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from adapter.foundation.promql.tree import Binary, Node, operands_of, selectors_of
from adapter.metrics.rulebook.findings import Code, Finding
from adapter.metrics.rulebook.model import Api, Rule
from adapter.metrics.rulebook.provided_metrics import static_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.lint.rule_positions import Place


LONGEST_REFRESH_SECONDS: Final = 49.0
"""Longest refresh with the default of `--max-answer-age` (60 s), from which the longest query time and a second are
subtracted."""

_NEEDS_ONE_SIDE: Final = frozenset({"or", "unless"})
_NAME: Final = "__name__"


def long_refresh(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding if the rule is refreshed so rarely that its answers grow too old between refreshes."""
    wanted = rule.policy.refresh_seconds
    if wanted is not None and wanted > LONGEST_REFRESH_SECONDS:
        message = (
            f"`refresh` is {wanted:g} s, and answers older than 60 s are not served (the default of "
            f"--max-answer-age): `serve` refreshes it every {LONGEST_REFRESH_SECONDS:g} s"
        )
        fix = f"write {LONGEST_REFRESH_SECONDS:g}s or less, or raise --max-answer-age"
        yield place.warning(Code.LONG_REFRESH, ("refresh",), message, fix)


def rows_of_all_namespaces(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding if each namespace gets the rows of all namespaces, and the rule does not say that it should."""
    restricts = rule.api is Api.CUSTOM or not rule.namespaced or rule.metrics_query.uses_request
    if not restricts and rule.policy.foreign_namespaces is None:
        message = "`metricsQuery` uses nothing of the request, so every namespace gets the rows of all namespaces"
        fix = "put <<.LabelMatchers>> into its selectors, or write `namespaced: false` or `foreignNamespaces: allow`"
        yield place.warning(Code.ROWS_OF_ALL_NAMESPACES, ("metricsQuery",), message, fix)


def value_not_served(rule: Rule, place: Place) -> Iterator[Finding]:
    """Yield a finding if the value for no data is never served, because it is unknown how far back the query looks."""
    if rule.policy.no_data_value is not None and math.isinf(rule.ranges_seconds):
        message = "`onNoData` is never served: `metricsQuery` computes a range or an offset, whose length is not known"
        fix = "write its ranges and offsets as plain durations, as in [90m], or write `onNoData: error`"
        yield place.warning(Code.NO_DATA_NOT_SERVED, ("onNoData",), message, fix)


def value_for_several(rule: Rule, tree: Node, place: Place) -> Iterator[Finding]:
    """Yield a finding if the value for no data is also served when one of several series is missing."""
    if rule.policy.no_data_value is None or rule.policy.max_sample_age_seconds is not None:
        return
    joined = _joined_series(tree)
    if joined is None:
        return
    message = f"`onNoData` is also served when only {joined} is missing, such as while its exporter is down"
    fix = "add `maxSampleAge`, which distinguishes that from no data, or write `onNoData: error`"
    yield place.warning(Code.NO_DATA_OF_SEVERAL, ("onNoData",), message, fix)


def _joined_series(node: Node) -> str | None:
    """Return which series an operator needs besides those of its left side; None if none are needed."""
    if isinstance(node, Binary):
        left, right = _names(node.left), _names(node.right)
        if node.matching is not None and node.operator not in _NEEDS_ONE_SIDE and left and right and left != right:
            return " or ".join(sorted(right - left) or sorted(left - right))
        return _joined_series(node.left) or _joined_series(node.right)
    return next((found for part in operands_of(node) if (found := _joined_series(part)) is not None), None)


def _names(node: Node) -> frozenset[str]:
    """Return the names of the series that are selected below the node."""
    named = (matcher for selector in selectors_of(node) for matcher in selector.matchers if matcher.label == _NAME)
    return frozenset(matcher.value if matcher.operator == "=" else str(matcher) for matcher in named)


def collisions(rules: Sequence[Rule], places: Mapping[str, Place], resolve: ResolveResource) -> Iterator[Finding]:
    """Yield a finding for each rule that certainly loses a metric to a later one: the last in the files wins."""
    winners: dict[tuple[Api, str], Rule] = {}
    makers: dict[tuple[object, ...], Rule] = {}
    for rule in reversed(rules):
        names = {metric.qualified for metric in static_metrics(rule, resolve)}
        wanted = _without_by_products(names)
        taken = {name: winner for name in wanted if (winner := winners.get((rule.api, name))) is not None}
        same = makers.get(_parts_for_metrics(rule))
        if taken:
            yield _collision_finding(places[rule.id], ", ".join(sorted(taken)), taken[max(taken)])
        elif same is not None:
            yield _collision_finding(places[rule.id], "every metric", same)
        winners.update({(rule.api, name): rule for name in names - taken.keys()})
        makers.setdefault(_parts_for_metrics(rule), rule)


def _without_by_products(names: set[str]) -> set[str]:
    """Return the names without those of metrics on namespaces, if the rule also describes objects within namespaces.

    Such a rule serves a metric on namespaces only because its series have a namespace. Rules for several kinds of
    objects may well share a name, such as `recommended_replicas`, and nobody requests that metric for a namespace.
    """
    return {name for name in names if not name.startswith("namespaces/")} or names


def _collision_finding(place: Place, what: str, winner: Rule) -> Finding:
    message = (
        f"{what} of this rule is also provided by {winner.id} ({winner.file}:{winner.line}), which comes later and wins"
    )
    return place.warning(Code.NAME_COLLISION, (), message, "give one of them another name, or remove it")


def _parts_for_metrics(rule: Rule) -> tuple[object, ...]:
    """Return the parts of a rule that determine which metrics it provides."""
    return (
        rule.api,
        rule.series_query,
        rule.series_filters,
        rule.naming.pattern.text,
        rule.naming.template,
        rule.resources,
    )
