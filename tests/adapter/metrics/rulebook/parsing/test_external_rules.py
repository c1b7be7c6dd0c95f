"""External rules: their namespace, and queries that only a selector completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.metrics.rulebook.findings import Severity
from tests.adapter.metrics.rulebook.parsing.test_parse import rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.metrics.rulebook.model import Rulebook

    Read = Callable[..., Rulebook]


@pytest.mark.parametrize(
    ("resources", "codes"),
    [
        ("", ["no-namespace-label"]),
        ("{namespaced: true}", ["no-namespace-label"]),
        ("{namespaced: false}", []),
        ("{template: <<.Resource>>}", []),
        ("{overrides: {ns: {resource: namespace}}}", []),
    ],
)
def test_an_external_rule_needs_a_namespace_label_or_none_at_all(resources: str, codes: list[str], read: Read) -> None:
    text = rule(resources=resources, metricsQuery="sum(<<.Series>>{<<.LabelMatchers>>})")
    assert [finding.code for finding in read(f"externalRules:\n{text}").findings] == codes


def test_group_by_is_empty_for_external_rules(read: Read) -> None:
    book = read("externalRules:\n" + rule(metricsQuery="up{<<.LabelMatchers>>} <<index .GroupBySlice 0>>"))
    assert [finding.code for finding in book.findings] == ["bad-template"]
    assert read("externalRules:\n" + rule()).findings == ()


@pytest.mark.parametrize("more", ["", ", template: <<.Resource>>"])
def test_a_query_that_is_valid_only_with_a_selector_is_reported_as_such(more: str, read: Read) -> None:
    """Nothing but a selector fills the matchers of such a rule: without one, its query has `{,kind=…}`."""
    query = """'sum(<<.Series>>{<<.LabelMatchers>>,kind="a"})'"""
    book = read(f"externalRules:\n{rule(resources=f'{{namespaced: false{more}}}', metricsQuery=query)}")
    (finding,) = book.findings
    assert (finding.severity, finding.code) == (Severity.WARNING, "query-not-read")
    assert finding.message.startswith("without a selector, the query that `metricsQuery` makes cannot be read")
    assert finding.fix == "always request it with a selector, or write <<.LabelMatchers>> behind the other matchers"
    assert len(book.rules) == 1
    unknown = rule(resources="{namespaced: false}", metricsQuery="newer(x{<<.LabelMatchers>>})")
    (finding,) = read(f"externalRules:\n{unknown}").findings
    assert finding.fix == "correct it, unless Prometheus supports more than this program", "no selector would help"
