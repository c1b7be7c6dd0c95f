"""The log has one line when a rule begins to fail, and one when it works again, however many queries it has."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusTimeoutError,
    PrometheusUnreachableError,
    QueryRefusedError,
    UnexpectedAnswerError,
)
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.errors import PartialAnswerError, QueryRefusedByPrometheusError, ReadingError
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS
from tests.support.readings import Harness, MadeUpObjects, Reply, ScriptedPrometheus, make_harness, reply, rulebook_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from adapter.foundation.sources.prometheus.errors import PrometheusError

NAMESPACES = [f"team-{number}" for number in range(15)]
REFUSED = QueryRefusedError("q", "execution", "found duplicate series")
SLOW = PrometheusTimeoutError("q", "no answer within 10 s")
AWAY = PrometheusUnreachableError("q", "http://prometheus:9090: connection refused")
UNKNOWN = AuthenticationRefusedError("q", "http://prometheus:9090 refuses the credentials (HTTP 401)")
FOREIGN = UnexpectedAnswerError("q", "http://prometheus:9090 redirects (HTTP 302) to https://sso/login")


USAGE_RULES = """
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (cpu_used{<<.LabelMatchers>>})
    nodeQuery: sum by (<<.GroupBy>>) (node_cpu_used{<<.LabelMatchers>>})
    resources: {overrides: {node: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
"""


class Team:
    """Namespaces that each ask for one metric by a query of their own."""

    def __init__(self) -> None:
        self.prometheus = ScriptedPrometheus(answer=lambda _query: reply())
        objects = MadeUpObjects({namespace: ["web-0"] for namespace in NAMESPACES})
        self.harness = make_harness(self.prometheus, objects=objects)

    def answer(self, with_: Reply | PrometheusError) -> None:
        self.prometheus.answer = lambda _query: with_

    def ask(self, metric: str = "only_exact") -> None:
        for namespace in NAMESPACES:
            self.harness.readings.objects(
                self.harness.pods(metric), namespace, BySelector(parse_selector("app=web")), EVERYTHING
            )


@pytest.fixture
def team() -> Team:
    return Team()


@pytest.fixture
def rule_lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[logging.LogRecord]]]:
    """Yield a function that returns the lines about rules since its last call."""

    def lines() -> list[logging.LogRecord]:
        found = [record for record in caplog.records if record.name == "adapter.metrics.readings.catalogue.rule_health"]
        caplog.clear()
        return found

    with caplog.at_level(logging.INFO):
        yield lines


def of_states(lines: Iterable[logging.LogRecord]) -> list[str]:
    """Return the messages about whether rules work, without those about their plans."""
    return [line.getMessage() for line in lines if "state" in getattr(line, "fields", {})]


def failing(harness: Harness) -> float:
    return harness.counter("tidewatch_adapter_rules", state="failing")


def test_a_failing_rule_is_logged_once_when_it_begins_and_once_when_it_ends(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]]
) -> None:
    team.ask()
    team.answer(REFUSED)
    team.harness.pass_time(300, step=1)
    (line,) = rule_lines()
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith("rules[2] (rules.yaml:11) fails (15 of its queries): query q: ")
    assert "found duplicate series" in line.getMessage()
    fields = {"rule": "rules[2]", "file": "rules.yaml", "line": 11, "state": "failing", "reason": "refused"}
    assert getattr(line, "fields", {}).items() >= fields.items()
    assert (failing(team.harness), team.harness.counter("tidewatch_adapter_rules", state="ok")) == (1, 4)
    team.answer(reply())
    team.harness.pass_time(30, step=1)
    (line,) = rule_lines()
    assert (line.levelname, line.getMessage()) == ("INFO", "rules[2] (rules.yaml:11) works again")
    assert getattr(line, "fields", {})["state"] == "ok"
    assert failing(team.harness) == 0


def test_another_reason_is_logged_too(team: Team, rule_lines: Callable[[], list[logging.LogRecord]]) -> None:
    team.ask()
    team.answer(REFUSED)
    team.harness.pass_time(120, step=1)
    team.answer(SLOW)
    team.harness.pass_time(120, step=1)
    assert [getattr(line, "fields", {})["reason"] for line in rule_lines()] == ["refused", "slow"]


def test_a_hanging_prometheus_is_logged_in_a_few_lines_for_any_number_of_rules(
    rule_lines: Callable[[], list[logging.LogRecord]],
) -> None:
    rule = (
        "- {{seriesQuery: jobs_{0}, name: {{as: jobs_{0}}}, resources: {{namespaced: false}}, metricsQuery: jobs_{0}}}"
    )
    prometheus = ScriptedPrometheus(answer=lambda _query: reply())
    harness = make_harness(prometheus, rules="\n".join(["externalRules:", *(rule.format(n) for n in range(200))]))
    prometheus.series_answer = lambda selector: [{"__name__": selector.partition("{")[0]}]
    harness.pass_time(61, step=1)
    for number in range(200):
        harness.readings.external(harness.external(f"jobs_{number}"), "shop", EVERYTHING)
    prometheus.answer = lambda _query: SLOW
    prometheus.series_answer = lambda _selector: SLOW
    harness.pass_time(300, step=1)
    lines = of_states(rule_lines())
    assert 1 <= len(lines) <= 12
    assert lines[0].startswith("200 rules fail: externalRules[0] (rules.yaml:2), ")
    assert lines[0].endswith(" and 197 more; the first: query q: no answer within 10 s")
    prometheus.answer = lambda _query: reply()
    prometheus.series_answer = lambda selector: [{"__name__": selector.partition("{")[0]}]
    harness.pass_time(120, step=1)
    lines = of_states(rule_lines())
    assert 1 <= len(lines) <= 12
    assert lines[-1].startswith("200 rules work again: externalRules[0] (rules.yaml:2), ")
    assert failing(harness) == 0


def test_a_flapping_rule_is_logged_once_a_minute_with_its_number_of_changes(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]]
) -> None:
    team.ask()
    for _ in range(10):
        team.answer(REFUSED)
        team.harness.pass_time(15, step=1)
        team.answer(reply())
        team.harness.pass_time(15, step=1)
    lines = [line.getMessage() for line in rule_lines()]
    assert 4 <= len(lines) <= 6
    assert sum("changes in 6" in line for line in lines) == len(lines) - 1


def test_an_outage_of_prometheus_is_not_logged_as_failing_rules(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]], caplog: pytest.LogCaptureFixture
) -> None:
    team.ask()
    team.harness.pass_time(61, step=1)
    team.answer(AWAY)
    team.prometheus.series_answer = lambda _selector: AWAY
    caplog.clear()
    team.harness.pass_time(300, step=1)
    team.answer(reply())
    team.prometheus.series_answer = lambda _selector: ()
    team.harness.pass_time(30, step=1)
    messages = [record.getMessage().partition(";")[0] for record in caplog.records]
    assert messages == ["queries to Prometheus fail", "Prometheus answers again"]
    assert rule_lines() == []


def test_a_failing_rule_does_not_work_again_because_prometheus_is_away(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]]
) -> None:
    team.ask()
    team.answer(REFUSED)
    team.harness.pass_time(100, step=1)
    assert len(rule_lines()) == 1
    for with_ in (AWAY, REFUSED):
        team.answer(with_)
        team.harness.pass_time(200, step=1)
        assert of_states(rule_lines()) == []
    assert failing(team.harness) == 1
    team.answer(reply())
    team.harness.pass_time(60, step=1)
    assert of_states(rule_lines()) == ["rules[2] (rules.yaml:11) works again"]


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [(AWAY, 61), (AWAY, 62), (AWAY, 63), (AWAY, 64), (AWAY, 65), (UNKNOWN, 63), (FOREIGN, 63)],
)
def test_an_outage_that_requests_meet_is_logged_in_two_lines_whenever_it_ends(
    team: Team,
    rule_lines: Callable[[], list[logging.LogRecord]],
    caplog: pytest.LogCaptureFixture,
    failure: PrometheusError,
    seconds: int,
) -> None:
    """The queries succeed before the look-ups are repeated, which then are no trouble of their rules."""

    def pass_time(seconds: int) -> None:
        for _ in range(seconds):
            with suppress(ReadingError):
                team.ask()
            team.harness.pass_time(1, step=1)

    pass_time(61)
    team.answer(failure)
    team.prometheus.series_answer = lambda _selector: failure
    caplog.clear()
    pass_time(seconds)
    team.answer(reply())
    team.prometheus.series_answer = lambda _selector: ()
    pass_time(70)
    messages = [record.getMessage().partition(";")[0] for record in caplog.records]
    assert messages == ["queries to Prometheus fail", "Prometheus answers again"]
    assert rule_lines() == []
    assert failing(team.harness) == 0


@pytest.mark.parametrize("failure", [AWAY, FOREIGN], ids=["away", "redirected"])
def test_outages_in_quick_succession_are_not_logged_as_failing_rules(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]], failure: PrometheusError
) -> None:
    """In that moment queries are answered, and no look-up is repeated."""
    team.prometheus.series_answer = lambda _selector: failure
    for second in range(130):
        team.answer(reply() if second in (55, 56) else failure)
        with suppress(ReadingError):
            team.ask()
        team.harness.pass_time(1, step=1)
    assert of_states(rule_lines()) == []


@pytest.mark.parametrize("failure", [AWAY, UNKNOWN, FOREIGN], ids=["away", "unauthorized", "redirected"])
def test_a_look_up_that_alone_fails_is_logged_as_a_failing_rule(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]], failure: PrometheusError
) -> None:
    """A gateway may refuse a path or a selector while all queries are answered."""
    team.prometheus.series_answer = lambda selector: failure if "only_exact" in selector else ()
    for _ in range(150):
        team.ask()
        team.harness.pass_time(1, step=1)
    (line,) = of_states(rule_lines())
    assert line.startswith("rules[2] (rules.yaml:11) fails (look-up): ")


def test_an_outage_is_logged_even_if_only_series_are_looked_up(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]]
) -> None:
    team.harness.pass_time(61, step=1)
    team.prometheus.series_answer = lambda _selector: AWAY
    team.harness.pass_time(600, step=1)
    team.prometheus.series_answer = lambda _selector: ()
    team.harness.pass_time(30, step=1)
    messages = [line.getMessage() for line in rule_lines()]
    assert len(messages) == 2
    assert messages[0].startswith("queries to Prometheus fail; no series are looked up, and rules keep their metrics: ")
    assert messages[1] == "queries to Prometheus succeed again"


def test_a_reload_that_moves_a_failing_rule_logs_nothing(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]]
) -> None:
    team.ask()
    team.answer(REFUSED)
    team.harness.pass_time(30, step=1)
    assert len(rule_lines()) == 1
    first, *others = rulebook_of().rules
    moved = rulebook_of()
    order = [*others, first]
    text_of = {rule.id: rule for rule in order}
    assert len(text_of) == len(moved.rules)
    team.harness.readings.replace_rulebook(
        type(moved)(rules=tuple(order), files=moved.files, findings=(), refused=(), resource=moved.resource)
    )
    team.harness.pass_time(120, step=1)
    assert rule_lines() == []
    assert failing(team.harness) == 1
    # Taken out: nothing works again that is not there.
    team.harness.readings.replace_rulebook(type(moved)(rules=(first,), files=moved.files))
    team.harness.pass_time(120, step=1)
    assert rule_lines() == []
    assert failing(team.harness) == 0


@pytest.mark.parametrize("refused", ["cpu_used", "node_cpu_used"])
def test_a_resource_rule_with_one_failing_query_is_logged_once_and_once_when_it_recovers(
    rule_lines: Callable[[], list[logging.LogRecord]], refused: str
) -> None:
    """The queries for containers and for nodes are two metrics of one rule, whichever of the two fails."""
    prometheus = ScriptedPrometheus(lambda query: REFUSED if f"({refused}" in query else reply())
    objects = MadeUpObjects({"shop": ["web-0"], None: ["n-1"]})
    harness = make_harness(prometheus, rules=USAGE_RULES, objects=objects)
    everything = BySelector(EVERYTHING)

    def ask() -> None:
        for kind, namespace in ((PODS, "shop"), (NODES, None)):
            with suppress(QueryRefusedByPrometheusError):
                harness.readings.usage(kind, namespace, everything)

    ask()
    for _ in range(4):
        harness.pass_time(5, step=1)
        ask()
    (line,) = of_states(rule_lines())
    assert line.startswith("resourceRules.cpu (rules.yaml:3) fails (")
    assert failing(harness) == 1
    harness.readings.replace_rulebook(rulebook_of(f"# moved\n{USAGE_RULES}"))
    prometheus.answer = lambda _query: reply()
    harness.pass_time(90, step=1)
    assert of_states(rule_lines()) == ["resourceRules.cpu (rules.yaml:4) works again"]
    assert failing(harness) == 0


def test_a_promql_warning_fails_only_the_requests_of_its_namespace(
    team: Team, rule_lines: Callable[[], list[logging.LogRecord]]
) -> None:
    """A series that one namespace broke must not be left out of that namespace's sum, nor fail the other namespaces."""

    def answer(query: str) -> Reply:
        mixed = 'namespace="team-0"' in query or 'namespace="' not in query
        own = {} if 'namespace="' in query else {"namespace": "team-1"}
        sample = ({**own, "pod": "web-0"}, "3")
        return reply(sample, warnings=("PromQL warning: encountered a mix of histograms and floats",) if mixed else ())

    team.prometheus.answer = answer
    which = BySelector(parse_selector("app=web"))
    team.harness.pass_time(1, step=1)
    ask = team.harness.readings.objects
    for namespace in NAMESPACES[1:]:
        assert ask(team.harness.pods("http_rps"), namespace, which, EVERYTHING).evaluated_at > 0
    with pytest.raises(PartialAnswerError, match="a mix of histograms and floats"):
        ask(team.harness.pods("http_rps"), "team-0", which, EVERYTHING)
    team.harness.pass_time(60, step=1)
    assert ask(team.harness.pods("http_rps"), "team-1", which, EVERYTHING).values == (("web-0", 3.0),)
    assert rule_lines()


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        (REFUSED, "Prometheus refuses the query"),
        (SLOW, "Prometheus does not answer in time"),
        (AWAY, "Prometheus cannot be asked"),
    ],
)
def test_an_older_answer_has_a_warning_with_its_age_and_no_text_of_prometheus(
    team: Team, failure: PrometheusError, cause: str
) -> None:
    team.ask()
    team.answer(failure)
    team.harness.pass_time(30, step=1)
    answer = team.harness.readings.objects(
        team.harness.pods("only_exact"), "team-3", BySelector(parse_selector("app=web")), EVERYTHING
    )
    (warning,) = answer.warnings
    assert warning.startswith("this answer is ")
    assert warning.endswith(f" s old: {cause}")


def test_a_first_answer_that_fails_is_an_error(team: Team) -> None:
    team.answer(REFUSED)
    with pytest.raises(QueryRefusedByPrometheusError):
        team.ask()
