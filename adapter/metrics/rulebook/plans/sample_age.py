"""The query for the times of the samples behind a rule's values, by which `maxSampleAge` is checked.

Prometheus evaluates a query with samples that may be minutes old, and its answer does not show their age. So a second
query is sent for the same instant as the rule's own: it returns, for each object, the oldest of the times of the newest
samples of its series; for external metrics, the time of each series. It is a template with the same fields as other
queries, so it is treated like them: one query answers many requesters if that is proven, and its rows belong to the
same objects.

If that query cannot be constructed, the rule is refused: it must not seem to have a guard that it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from adapter.foundation.promql.quoting import go_quoted, is_metric_name, label_in_query
from adapter.foundation.promql.reach import LOOK_BACK_SECONDS, oldest_sample
from adapter.foundation.promql.tree import Node, SelectorNode, TreeMatcher, Wrapper, operands_of
from adapter.foundation.promql.tree_parser import UnreadableQueryError, parse_query
from adapter.metrics.rulebook.model import Api, Metric
from adapter.metrics.rulebook.templates.matchers import value_matcher
from adapter.metrics.rulebook.templates.template import (
    PlacingError,
    QueryTemplate,
    TemplateError,
    parse_query_template,
    quotes_series,
    template_arguments,
)

_NAME = "__name__"
# Names that no rule contains by chance.
_SERIES = "madeupseries"
_GROUP_BY = "madeupgroup"
_ASKED = TreeMatcher("madeuplabel", "=", "madeupvalue")
_PART = "tidewatch_part"
"""Label that distinguishes the series of several selectors, which may differ only in their names."""


class SampleAgeError(Exception):
    """The times of a rule's samples cannot be queried; the message says which part of its query prevents it."""


def times_template(query: QueryTemplate, api: Api) -> QueryTemplate:
    """Return the `metricsQuery` of the metric that `times_of` returns. Raises SampleAgeError."""
    if not query.is_plain:
        raise SampleAgeError("its template computes with values of the request")
    tree = _tree(query)
    selectors = sorted(_widest(set(_selectors(tree))), key=lambda selector: selector.matchers)
    if not selectors:
        raise SampleAgeError("it selects no series")
    # A series that has been silent for longer has no time any more, but its samples still count. A query for the times
    # over the range would not help: it finds series that were marked as ended as well as silent ones.
    if (oldest := oldest_sample(tree)) > LOOK_BACK_SECONDS:
        raise SampleAgeError(
            f"it uses samples that are up to {oldest:g} s old, but times are known only for samples of the last "
            f"{LOOK_BACK_SECONDS:g} s (Prometheus's look-back)"
        )
    quoted = quotes_series(query)
    times = [f"timestamp({_selector_template(selector, quoted=quoted)})" for selector in selectors]
    if len(times) > 1:
        times = [f'label_replace({each}, "{_PART}", "{number}", "", "")' for number, each in enumerate(times)]
    text = " or ".join(times)
    # Each series of an external metric has its own time; a series that becomes silent is remembered (`SilentSeries`).
    return _check_template(text if api is Api.EXTERNAL else f"min by (<<.GroupBy>>) ({text})", selectors)


def times_of(metric: Metric) -> Metric | None:
    """Return the metric whose values are the times of the metric's samples, in Unix seconds, for each of its objects.

    None if the rule does not limit their age. No API serves this metric.
    """
    rule = metric.rule
    if rule.times_query is None:
        return None
    own = replace(rule, metrics_query=rule.times_query, times_query=None)
    return replace(metric, rule=own, name=f"{metric.name} (times of its samples)")


def _tree(query: QueryTemplate) -> Node:
    data = template_arguments(_SERIES, [value_matcher(_ASKED.label, _ASKED.value)], (_GROUP_BY,))
    try:
        return parse_query(query.render(data))
    except (TemplateError, PlacingError) as e:
        raise SampleAgeError(f"its template does not work: {e}") from e
    except UnreadableQueryError as e:
        raise SampleAgeError(f"it cannot be read: {e}") from e


def _selectors(node: Node) -> Iterator[SelectorNode]:
    """Yield all selectors below the node, without the matchers that the request adds and without ranges."""
    if isinstance(node, SelectorNode):
        yield _without_request(node)
    if isinstance(node, Wrapper) and _is_elsewhere(node.kind):
        raise SampleAgeError("a subquery is evaluated at another time by `offset` or `@`")
    for part in operands_of(node):
        yield from _selectors(part)


def _widest(selectors: set[SelectorNode]) -> Iterator[SelectorNode]:
    """Yield the selectors, except those that select a subset of what another one selects."""
    for selector in selectors:
        if not any(set(other.matchers) < set(selector.matchers) for other in selectors):
            yield selector


def _without_request(selector: SelectorNode) -> SelectorNode:
    matchers = tuple(matcher for matcher in selector.matchers if matcher != _ASKED)
    shown = "{" + ", ".join(map(str, matchers)).replace(_SERIES, "<<.Series>>") + "}"
    if _is_elsewhere(selector.timing):
        raise SampleAgeError(f"{shown} is evaluated at another time by `offset` or `@`")
    if selector.alternatives:
        raise SampleAgeError(f"{shown} combines matchers by `or`")
    if _ASKED not in selector.matchers:
        raise SampleAgeError(f"{shown} does not contain <<.LabelMatchers>>, so it is unknown whose samples it adds")
    for matcher in matchers:
        is_series = matcher == TreeMatcher(_NAME, "=", _SERIES)
        if not is_series and any(word in str(matcher) for word in (_SERIES, _GROUP_BY, _ASKED.label, _ASKED.value)):
            raise SampleAgeError(f"a matcher of {shown} depends on the request")
    return SelectorNode(matchers, (), "")


def _is_elsewhere(timing: str) -> bool:
    return "offset" in timing or "@" in timing


def _selector_template(selector: SelectorNode, *, quoted: bool) -> str:
    """Return the selector as a template; `quoted` means that the name of the rule's series is between quotes."""
    name = next(
        (matcher.value for matcher in selector.matchers if (matcher.label, matcher.operator) == (_NAME, "=")), ""
    )
    bare = name if is_metric_name(name) and not (quoted and name == _SERIES) else ""
    fixed = [
        f"{label_in_query(matcher.label)}{matcher.operator}{go_quoted(matcher.value)}"
        for matcher in selector.matchers
        if not bare or matcher != TreeMatcher(_NAME, "=", name)
    ]
    # The made-up name is in no other matcher.
    return f"{bare}{{{','.join([*fixed, '<<.LabelMatchers>>'])}}}".replace(_SERIES, "<<.Series>>")


def _check_template(text: str, selectors: list[SelectorNode]) -> QueryTemplate:
    """Return the template if it has the intended selectors: a matcher may contain template syntax."""
    try:
        template = parse_query_template(text)
    except TemplateError as e:
        raise SampleAgeError(f"its matchers cannot be written in a template: {e}") from e
    if not template.is_plain or set(_selectors(_tree(template))) != set(selectors):
        raise SampleAgeError("its selectors cannot be written on their own")
    return template
