"""Whatever a rule file or a request contains, it is understood or refused, and nothing crashes or hangs."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.regex import BadPatternError
from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.findings import Severity
from adapter.metrics.rulebook.gotemplate import TemplateError
from adapter.metrics.rulebook.gotemplate.literals import LiteralError, read_character, read_number, read_string
from adapter.metrics.rulebook.naming import NamingError, make_naming
from adapter.metrics.rulebook.provided_metrics import static_metrics
from adapter.metrics.rulebook.query_rendering import RenderError, exact_query
from adapter.metrics.rulebook.requests import Asked
from adapter.metrics.rulebook.resources import LabelTemplateError, parse_label_template
from adapter.metrics.rulebook.series_query import NotASelectorError, parse_series_query
from tests.support.metrics import metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Rulebook

PIECES = [
    "<<", ">>", ".Resource", ".Group", ".Series", ".LabelMatchers", "kube_", "{", "}", "(", ")", "(?P<a>", "+", "*",
    "$1", "${a}", "up", "sum", " by ", "range ", "end", "if ", "define ", '"x"', "=~", "[5m]", " or ", "@ 1",
]  # fmt: skip
TEXTS = st.one_of(
    # Beyond these JSON and YAML spell characters in different ways.
    st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=12),
    st.text(alphabet="<>.$(){}[]|*+?\\^\"'`:=~!,-_ \n0a", max_size=16),
    st.lists(st.sampled_from(PIECES), max_size=10).map("".join),
)
RULES = st.fixed_dictionaries(
    {
        "seriesQuery": TEXTS,
        "seriesFilters": st.lists(st.fixed_dictionaries({"is": TEXTS}), max_size=2),
        "name": st.fixed_dictionaries({"matches": TEXTS, "as": TEXTS}),
        "resources": st.fixed_dictionaries(
            {"overrides": st.just({"namespace": {"resource": "namespace"}})}, optional={"template": TEXTS}
        ),
        "metricsQuery": TEXTS,
    }
)


@given(TEXTS, TEXTS)
def test_any_label_template_is_used_or_refused(text: str, label: str) -> None:
    try:
        template = parse_label_template(text)
    except (LabelTemplateError, TemplateError, BadPatternError):
        return
    requested: list[tuple[str, str]] = []

    def resolve(group: str, resource: str) -> None:
        requested.append((group, resource))

    template.resource_of(label, resolve)  # type: ignore[arg-type]  # finds nothing: only the requested kinds matter
    template.resource_of(template.label_of("", "namespace"), resolve)  # type: ignore[arg-type]  # likewise
    assert all(resource for _, resource in requested)


@given(TEXTS, TEXTS, TEXTS)
def test_any_naming_is_used_or_refused(matches: str, as_: str, series: str) -> None:
    try:
        naming = make_naming(matches, as_)
    except (BadPatternError, NamingError):
        return
    name = naming.name_for(series)
    assert (name is not None) is naming.pattern.found_in(series)
    if naming.always_empty:
        assert not name


@given(TEXTS)
def test_any_series_query_is_used_or_refused(text: str) -> None:
    try:
        selection = parse_series_query(text)
    except (NotASelectorError, UnreadableQueryError):
        return
    assert not selection.present & selection.absent or selection.name is None


@given(st.one_of(st.text(max_size=8), st.text(alphabet="0123456789abcdefxXoO_.+-peEi'\"\\", max_size=12)))
def test_any_literal_is_read_or_refused(text: str) -> None:
    for read, literal in ((read_number, text), (read_string, f'"{text}"'), (read_character, f"'{text}'")):
        try:
            value = read(literal)
        except LiteralError:
            continue
        assert isinstance(value, (int, float, str))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(["rules", "externalRules"]), rule=RULES)
def test_any_rule_is_used_or_refused(
    read: Callable[..., Rulebook], resolve: ResolveResource, key: str, rule: dict[str, object]
) -> None:
    book = read(json.dumps({key: [rule]}))
    assert len(book.rules) + len(book.refused) == 1
    assert not book.refused or Severity.ERROR in {finding.severity for finding in book.findings}
    for one in book.rules:
        series = [{"__name__": "up", "namespace": "x", "pod": "x"}]
        for metric in (*metrics_of(one, series, resolve), *static_metrics(one, resolve)):
            with suppress(RenderError):
                assert exact_query(metric, Asked("shop", ("web-0",), EVERYTHING)).strip()
