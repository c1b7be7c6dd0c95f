"""`onNoData`, `maxSampleAge`, `refresh` and `window`: what their values mean, and which values are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.quantities import quantity_of
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.model import ForeignNamespaces, OnNoData, Policy, Rulebook
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import Resource

RULE = """\
rules:
- seriesQuery: 'good{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""
EXTERNAL = """\
externalRules:
- seriesQuery: queue_depth
  resources: {namespaced: false}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>})
"""


def resolve(group: str, name: str) -> Resource:
    return find_resource(BUILT_IN, group, name)


def book(*lines: str, rule: str = RULE) -> Rulebook:
    text = rule + "".join(f"  {line}\n" for line in lines)
    return parse_rulebook([load_documents(text, "rules.yaml")], resolve)


def policy(*lines: str, rule: str = RULE) -> Policy:
    found = book(*lines, rule=rule)
    assert found.findings == ()
    return found.rules[0].policy


@pytest.mark.parametrize("rule", [RULE, EXTERNAL], ids=["custom", "external"])
def test_a_rule_without_policy_keys_has_the_default_policy(rule: str) -> None:
    assert policy(rule=rule) == Policy()
    assert book(rule=rule).rules[0].times_query is None


@pytest.mark.parametrize("rule", [RULE, EXTERNAL], ids=["custom", "external"])
def test_all_policy_keys_may_be_combined(rule: str) -> None:
    keys = ("onNoData: 0", "maxSampleAge: 1m30s", "refresh: 30s", "window: 2m")
    assert policy(*keys, rule=rule) == Policy(OnNoData.VALUE, 0.0, 90.0, 30.0, 120)


@pytest.mark.parametrize(
    ("written", "meant", "value"),
    [
        ("error", OnNoData.ERROR, None),
        ("empty", OnNoData.EMPTY, None),
        ("0", OnNoData.VALUE, 0.0),
        ("2.5", OnNoData.VALUE, 2.5),
        ("-3", OnNoData.VALUE, -3.0),
        ("100m", OnNoData.VALUE, 0.1),
        ("2Ki", OnNoData.VALUE, 2048.0),
        ("'7'", OnNoData.VALUE, 7.0),
        ("1e3", OnNoData.VALUE, 1000.0),
        ("{value: 3}", OnNoData.VALUE, 3.0),
        ("{value: 250m}", OnNoData.VALUE, 0.25),
        ("", None, None),
    ],
)
def test_on_no_data_accepts_error_empty_and_quantities(
    written: str, meant: OnNoData | None, value: float | None
) -> None:
    found = policy(f"onNoData: {written}")
    assert (found.on_no_data, found.no_data_value) == (meant, value)


@given(st.integers(-(10**12), 10**12))
def test_an_accepted_value_is_served_as_written(milli: int) -> None:
    value = policy(f"onNoData: {milli}m").no_data_value
    assert value is not None
    assert quantity_of(value) == quantity_of(milli / 1000)


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ("onNoData: value", "does not say which value", "onNoData: 0"),
        ("onNoData: zero", "'zero' is not error, empty or a number", "0, 2.5 or 500m"),
        ("onNoData: NaN", "'NaN' is not error, empty or a number", "number"),
        ("onNoData: .inf", "'.inf' is not error, empty or a number", "number"),
        ("onNoData: 100u", "'100u' cannot be served: values are multiples of 0.001", "number"),
        ("onNoData: 1e900", "cannot be served", "number"),
        ("onNoData: -1e16", "cannot be served", "number"),
        ("onNoData: {}", "`onNoData` has no value", "{value: 3}"),
        ("onNoData: {value: many}", "'many' is not error, empty or a number", "number"),
        ("maxSampleAge: 2 minutes", "`maxSampleAge` '2 minutes' is not a duration", "1m30s"),
        ("maxSampleAge: 30", "`maxSampleAge` '30' is not a duration", "30s"),
        ("maxSampleAge: 0s", "`maxSampleAge` is 0 s, but at least a second is required", "30s"),
        ("refresh: 500ms", "`refresh` is 0.5 s, but at least a second is required", "30s"),
        ("refresh: -5s", "`refresh` is -5 s, but at least a second is required", "30s"),
        ("window: 1s500ms", "`window` is 1.5 s, but answers state whole seconds", "whole seconds"),
        ("window: 0", "`window` is 0 s", "30s"),
        ("foreignNamespaces: yes", "`foreignNamespaces` 'yes' is unknown", "error or allow"),
        ("holdSilent: 1h", "`holdSilent` has a meaning only in externalRules with `maxSampleAge`", "remove it"),
    ],
)
def test_an_unclear_policy_refuses_its_rule(line: str, message: str, fix: str) -> None:
    found = book(line)
    (finding,) = found.findings
    assert (finding.code, finding.severity.value, finding.line) == ("bad-policy", "error", 5)
    assert message in finding.message
    assert fix in finding.fix
    assert [rule.id for rule in found.refused] == ["rules[0]"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("onNoData: [0]", "wrong-kind"),
        ("onNoData: {value: [0]}", "wrong-kind"),
        ("onNoData: {values: 0}", "unknown-key"),
        ("maxSampleAge: {seconds: 3}", "wrong-kind"),
        ("window: [1m]", "wrong-kind"),
    ],
)
def test_a_value_of_the_wrong_kind_is_reported_once(line: str, code: str) -> None:
    assert [finding.code for finding in book(line).findings] == [code]


@pytest.mark.parametrize(
    ("key", "meant"),
    [("onNodata", "onNoData"), ("maxSampelAge", "maxSampleAge"), ("refreshs", "refresh"), ("windows", "window")],
)
def test_a_misspelt_key_is_an_error_that_names_the_right_one(key: str, meant: str) -> None:
    (finding,) = book(f"{key}: 1m").findings
    assert finding.code == "unknown-key"
    assert meant in finding.fix


@pytest.mark.parametrize(("written", "meant"), [("error", ForeignNamespaces.ERROR), ("allow", ForeignNamespaces.ALLOW)])
@pytest.mark.parametrize("rule", [RULE, EXTERNAL], ids=["custom", "external"])
def test_foreign_namespaces_accepts_error_and_allow(rule: str, written: str, meant: ForeignNamespaces) -> None:
    assert policy(f"foreignNamespaces: {written}", rule=rule).foreign_namespaces is meant


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ((), 1800),
        (("holdSilent: 24h",), 86400),
        (("holdSilent: 1s",), 1),
        (("holdSilent: 0s",), 0),
        (("holdSilent: 0",), 0),
    ],
)
def test_hold_silent_sets_how_long_a_silent_series_is_held(lines: tuple[str, ...], seconds: float) -> None:
    assert policy("maxSampleAge: 1m", *lines, rule=EXTERNAL).hold_silent_seconds == seconds


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("holdSilent: 1h",), "only in externalRules with `maxSampleAge`"),
        (("maxSampleAge: 1m", "holdSilent: 25h"), "at most a day is allowed"),
        (("maxSampleAge: 1m", "holdSilent: long"), "`holdSilent` 'long' is not a duration"),
    ],
)
def test_an_invalid_hold_silent_refuses_its_rule(lines: tuple[str, ...], message: str) -> None:
    (finding,) = book(*lines, rule=EXTERNAL).findings
    assert finding.code == "bad-policy"
    assert message in finding.message


def test_a_refresh_that_lets_values_age_beyond_the_limit_is_an_error() -> None:
    (finding,) = book("maxSampleAge: 30s", "refresh: 30s").findings
    assert (finding.code, finding.line) == ("bad-policy", 6)
    assert "not shorter than `maxSampleAge`" in finding.message
    assert policy("maxSampleAge: 30s", "refresh: 29s").refresh_seconds == 29


def test_an_age_limit_that_cannot_be_checked_refuses_the_rule_with_the_reason() -> None:
    rule = RULE.replace("sum(<<.Series>>{<<.LabelMatchers>>})", "sum(<<.Series>>{<<.LabelMatchers>>} offset 5m)")
    found = book("maxSampleAge: 1m", rule=rule)
    (finding,) = found.findings
    assert (finding.code, finding.severity.value, finding.line) == ("sample-age-not-checked", "error", 5)
    assert "another time by `offset` or `@`" in finding.message
    assert found.rules == ()
    assert book(rule=rule).refused == (), "without the limit the rule serves"
