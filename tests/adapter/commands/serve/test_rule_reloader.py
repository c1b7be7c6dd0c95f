"""Changed rule files take effect file by file and rule by rule, and never twice or in part."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.commands.serve.rule_reloader import RuleReloader
from adapter.commands.trials import queries
from adapter.commands.trials.queries import TRIAL_SECONDS, QueryTrials
from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.files.kept_contents import KeptContents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.service.runtime.followed_configuration import LOOKS_UNTIL_SETTLED
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError, QueryRefusedError
from tests.support.readings import Reply, ScriptedPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer
    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.metrics.rulebook.model import Rule, Rulebook

RESOLVE = partial(find_resource, BUILT_IN)
GENERIC = "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
LATER = "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>}) over later"
"""An expression that this version cannot parse, and that a later Prometheus may accept."""
USAGE = """\
resourceRules:
  cpu:
    nodeQuery: sum by (<<.GroupBy>>) (node_cpu{<<.LabelMatchers>>})
    resources: {template: <<.Resource>>}
"""


RULE = """\
- seriesQuery: '{name}{{namespace!=""}}'
  resources: {{template: <<.Resource>>}}
  metricsQuery: {query}
"""


def rules(*series: str, query: str = GENERIC) -> str:
    return "rules:\n" + "".join(RULE.format(name=name, query=query) for name in series)


class ReloadedRules:
    """A configuration, with what it has reported."""

    def __init__(
        self, *paths: Path, prometheus: ScriptedPrometheus | None = None, kept: KeptContents | None = None
    ) -> None:
        self.registry = CollectorRegistry()
        self.configuration = RuleReloader(paths, RESOLVE, self.registry, "tidewatch_adapter", kept)
        self.applied: list[Rulebook] = []
        self.fault: Exception | None = None
        trials = QueryTrials(lambda _: prometheus, RESOLVE) if prometheus else None
        self.configuration.on_change(self._apply, trials)

    def _apply(self, rulebook: Rulebook) -> None:
        if self.fault is not None:
            raise self.fault
        self.applied.append(rulebook)

    def look(self) -> None:
        for _ in range(LOOKS_UNTIL_SETTLED):
            self.configuration.check()

    def serves(self) -> list[str]:
        return [rule.series_query.partition("{")[0] for rule in self.configuration.rulebook.rules]

    @property
    def retained(self) -> set[str]:
        return set(self.configuration.rulebook.retained)

    @property
    def is_well(self) -> bool:
        return self.registry.get_sample_value("tidewatch_adapter_config_last_reload_successful") == 1

    def reloads(self, result: str) -> float | None:
        return self.registry.get_sample_value("tidewatch_adapter_config_reloads_total", {"result": result})


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)


def contents(rulebook: Rulebook) -> list[Rule]:
    return [rule.content for rule in rulebook.rules]


def logged(caplog: pytest.LogCaptureFixture, pattern: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if re.search(pattern, record.getMessage())]


def test_the_last_good_version_of_a_refused_rule_outlives_the_worker(tmp_path: Path) -> None:
    kept = KeptContents()
    write(tmp_path, a=rules("a", "b"))
    reloaded = ReloadedRules(tmp_path, kept=kept)
    # One rule is broken; meanwhile another one is changed, then broken too.
    for text in (rules("a") + RULE.format(name="b", query="7 +"), rules("c") + RULE.format(name="b", query="7 +")):
        write(tmp_path, a=text)
        reloaded.look()
    write(tmp_path, a="rules:\n" + RULE.format(name="c", query="8 +") + RULE.format(name="b", query="7 +"))
    reloaded.look()
    assert (reloaded.serves(), reloaded.retained) == (["c", "b"], {"rules[0]", "rules[1]"})
    after = ReloadedRules(tmp_path, kept=kept)
    assert (after.serves(), after.retained, after.is_well) == (reloaded.serves(), reloaded.retained, False)
    assert contents(after.configuration.rulebook) == contents(reloaded.configuration.rulebook)
    write(tmp_path, a=rules("c", "b"))
    after.look()
    assert (after.serves(), after.retained, after.is_well) == (["c", "b"], set(), True)


@pytest.mark.parametrize("broken", ["rules: [\n- a: b\n", "- a\n", "\x00"], ids=["no YAML", "no keys", "rubbish"])
def test_a_broken_file_beside_a_good_one_stops_neither_the_start_nor_changes(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a=rules("a"), b=broken)
    reloaded = ReloadedRules(tmp_path)
    assert (reloaded.serves(), reloaded.is_well) == (["a"], False)
    assert len(logged(caplog, r"b\.yaml:[0-9]+: .*; nothing is served from it$")) == 1
    write(tmp_path, a=rules("a", "n"))
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well, reloaded.reloads("partial")) == (["a", "n"], False, 1)
    assert len(logged(caplog, r"b\.yaml")) == 1
    write(tmp_path, b=rules("b"))
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well, reloaded.reloads("success")) == (["a", "n", "b"], True, 1)


def test_the_last_good_rules_of_a_broken_file_stay_in_force_while_others_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a=rules("a"), b=rules("b"), c=rules("c"))
    reloaded = ReloadedRules(tmp_path)
    write(tmp_path, a=rules("n", "a"), b="rules: [")
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well, reloaded.reloads("partial")) == (["n", "a", "b", "c"], False, 1)
    assert reloaded.retained == set()
    write(tmp_path, c=rules("c", "m"))
    reloaded.look()
    assert reloaded.serves() == ["n", "a", "b", "c", "m"]
    assert len(logged(caplog, r"b\.yaml:2: .*; its last good rules stay in force$")) == 1
    (tmp_path / "b.yaml").unlink()
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well) == (["n", "a", "c", "m"], True)


def test_a_file_whose_list_vanished_by_a_typo_is_broken_and_others_are_not(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"), b=rules("b"))
    reloaded = ReloadedRules(tmp_path)
    write(tmp_path, a=rules("a", "n"), b=rules("b").replace("rules:", "rule:"))
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well, reloaded.reloads("partial")) == (["a", "n", "b"], False, 1)


def test_without_any_valid_file_there_is_no_start_and_no_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a="rules: [", b="- x")
    with pytest.raises(FilesError, match=r"a\.yaml:2: .*\n.*b\.yaml:1: "):
        ReloadedRules(tmp_path)
    write(tmp_path, a=rules("a"), b=rules("b"))
    reloaded = ReloadedRules(tmp_path)
    write(tmp_path, a="rules: [", b="- x")
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well, reloaded.reloads("failure")) == (["a", "b"], False, 1)
    for location in (r"a\.yaml:2", r"b\.yaml:1"):
        assert len(logged(caplog, f"{location}: .*; the last good rules stay in force$")) == 1


def test_a_named_file_or_folder_that_is_gone_keeps_its_rules_and_others_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder, b=rules("b"), c=rules("c"))
    write(tmp_path, a=rules("a"), d=rules("d"))
    reloaded = ReloadedRules(tmp_path / "a.yaml", folder, tmp_path / "d.yaml")
    assert reloaded.serves() == ["a", "b", "c", "d"]
    folder.rename(tmp_path / "away")
    (tmp_path / "d.yaml").unlink()
    write(tmp_path, a=rules("n"))
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well) == (["n", "b", "c", "d"], False)
    assert len(logged(caplog, "its last good rules stay in force$")) == 2
    with pytest.raises(FilesError, match="cannot read the file"):
        ReloadedRules(folder)


def test_a_broken_file_that_is_named_twice_keeps_its_rules_in_both_places(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"), b=rules("b"))
    reloaded = ReloadedRules(tmp_path, tmp_path / "a.yaml")
    assert reloaded.serves() == ["a", "b", "a"]
    for broken in ("rules: [", "rules: {", rules("a").replace("rules:", "rule:")):
        write(tmp_path, a=broken)
        reloaded.look()
        assert (reloaded.serves(), reloaded.is_well) == (["a", "b", "a"], False)


def test_resource_rules_in_two_files_come_from_the_first_and_do_not_block_changes(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"), b=USAGE)
    reloaded = ReloadedRules(tmp_path)
    write(tmp_path, a=rules("a", "n") + USAGE)
    reloaded.look()
    assert (reloaded.serves(), reloaded.is_well, reloaded.reloads("partial")) == (["a", "n"], False, 1)
    assert [rule.file for rule in reloaded.configuration.rulebook.resource.rules] == [str(tmp_path / "a.yaml")]


def test_an_empty_folder_is_a_warning_and_later_files_in_it_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reloaded = ReloadedRules(tmp_path)
    assert logged(caplog, rf"^{tmp_path}: no \*\.yaml in this folder, so nothing is served from it$")
    write(tmp_path, a=rules("a") + USAGE)
    caplog.set_level("INFO")
    reloaded.look()
    assert reloaded.serves() == ["a"]
    (record,) = (record for record in caplog.records if "are in force" in record.getMessage())
    assert vars(record)["fields"]["rules"] == 2


def test_a_change_that_cannot_be_applied_has_no_effect_and_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"))
    reloaded = ReloadedRules(tmp_path)
    reloaded.fault = RuntimeError("a fault")
    write(tmp_path, a=rules("n"))
    reloaded.configuration.check()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="a fault"):
            reloaded.configuration.check()
        assert (reloaded.serves(), reloaded.is_well, reloaded.applied) == (["a"], False, [])
    reloaded.fault = None
    reloaded.configuration.check()
    assert (reloaded.serves(), reloaded.is_well, len(reloaded.applied), reloaded.reloads("success")) == (
        ["n"],
        True,
        1,
        1,
    )
    reloaded.look()
    assert len(reloaded.applied) == 1


class Prometheus(ScriptedPrometheus):
    """A Prometheus that evaluates a query at some moment if the query names none."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        assert timeout_seconds <= TRIAL_SECONDS
        return super().instant(query, timeout_seconds=timeout_seconds, at=at or 1000.0)


def refuses_later(query: str) -> Reply | PrometheusError:
    refused = "later" in query or query.count("{") != query.count("}")
    return QueryRefusedError(query, "bad_data", "parse error: unexpected") if refused else Reply()


def refuses_commas(query: str) -> Reply | PrometheusError:
    refused = QueryRefusedError(query, "bad_data", "parse error: unexpected ','")
    return refused if "{," in query else Reply()


def unreachable(query: str) -> PrometheusError:
    return PrometheusUnreachableError(query, "nobody there")


def fails_now(query: str) -> PrometheusError:
    return QueryRefusedError(query, "execution", "found duplicate series")


def costs_too_much(query: str) -> PrometheusError:
    return QueryRefusedError(query, "cost_limit", "query would read too many series")


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [
        (refuses_later, True),
        (lambda _: Reply(), False),
        (unreachable, False),
        (fails_now, False),
        (costs_too_much, False),
    ],
    ids=["refused", "taken", "unreachable", "not for its text", "too expensive"],
)
def test_prometheus_decides_whether_a_query_that_cannot_be_parsed_here_is_a_typo(
    tmp_path: Path, answer: Callable[[str], Reply | PrometheusError], *, is_kept: bool
) -> None:
    write(tmp_path, a=rules("a") + USAGE)
    prometheus = Prometheus(answer)
    reloaded = ReloadedRules(tmp_path, prometheus=prometheus)
    before = reloaded.configuration.rulebook
    write(
        tmp_path, a=rules("a", query=LATER) + USAGE.replace("{<<.LabelMatchers>>})", "{<<.LabelMatchers>>}) over later")
    )
    reloaded.look()
    now = reloaded.configuration.rulebook
    assert prometheus.asked
    assert reloaded.serves() == ["a"]
    assert reloaded.retained == ({"rules[0]", "resourceRules.cpu"} if is_kept else set())
    assert (contents(now) == contents(before)) is is_kept
    assert reloaded.is_well is not is_kept
    assert [finding.code for finding in now.findings].count("query-refused") == 2 * is_kept


def test_a_rule_whose_query_needs_a_selector_is_tried_with_one(tmp_path: Path) -> None:
    """Only a selector fills its matchers, and autoscalers have one: without it, the query would have `{,kind=…}`."""
    write(tmp_path, a=rules("a"))
    reloaded = ReloadedRules(tmp_path, prometheus=Prometheus(refuses_commas))
    rule = RULE.format(name="b", query="""'sum(<<.Series>>{<<.LabelMatchers>>,kind="a"})'""")
    write(tmp_path, a=f"{rules('a')}externalRules:\n{rule.replace('template: <<.Resource>>', 'namespaced: false')}")
    reloaded.look()
    assert reloaded.serves() == ["a", "b"]
    assert reloaded.is_well


def test_a_query_that_prometheus_refused_stays_refused_while_it_is_unreachable(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a", "b"))
    prometheus = Prometheus(refuses_later)
    reloaded = ReloadedRules(tmp_path, prometheus=prometheus)
    typo = rules("a", query=LATER) + rules("b").partition("\n")[2]
    write(tmp_path, a=typo)
    reloaded.look()
    assert reloaded.retained == {"rules[0]"}
    prometheus.answer = unreachable
    write(tmp_path, a=typo + rules("c").partition("\n")[2])
    reloaded.look()
    assert (reloaded.serves(), reloaded.retained) == (["a", "b", "c"], {"rules[0]"})
    prometheus.answer = lambda _: Reply()
    write(tmp_path, a=typo)
    reloaded.look()
    assert (reloaded.serves(), reloaded.retained, reloaded.is_well) == (["a", "b"], set(), True)


def test_only_the_most_recent_refused_queries_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_REFUSED", 1)
    write(tmp_path, a=rules("a"))
    prometheus = Prometheus(refuses_later)
    reloaded = ReloadedRules(tmp_path, prometheus=prometheus)
    for query in (LATER, f"{LATER} still"):
        write(tmp_path, a=rules("a", query=query))
        reloaded.look()
    assert reloaded.retained == {"rules[0]"}
    prometheus.answer = unreachable
    write(tmp_path, a=rules("a", "b", query=f"{LATER} still"))
    reloaded.look()
    assert reloaded.retained == {"rules[0]"}
    write(tmp_path, a=rules("a", query=LATER))
    reloaded.look()
    assert reloaded.retained == set()


def test_a_query_that_depends_on_the_request_is_not_tried(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"))
    prometheus = Prometheus(refuses_later)
    reloaded = ReloadedRules(tmp_path, prometheus=prometheus)
    write(
        tmp_path, a=rules("a", query="quantile(<<.LabelValuesByName.q>>, <<.Series>>{<<.LabelMatchers>>}) over later")
    )
    reloaded.look()
    assert (reloaded.retained, reloaded.is_well, prometheus.asked) == (set(), True, [])


def test_a_series_query_that_cannot_be_parsed_here_is_tried_too(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"))
    reloaded = ReloadedRules(tmp_path, prometheus=Prometheus(refuses_later))
    write(tmp_path, a=rules("a").replace('namespace!=""}', 'namespace!=""'))
    reloaded.look()
    assert (reloaded.serves(), reloaded.retained) == (["a"], {"rules[0]"})


def test_queries_that_can_be_parsed_or_were_there_at_the_start_are_not_tried(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a", query=LATER))
    prometheus = Prometheus(refuses_later)
    reloaded = ReloadedRules(tmp_path, prometheus=prometheus)
    write(tmp_path, a=rules("n") + rules("a", query=LATER).partition("\n")[2])
    reloaded.look()
    assert (reloaded.serves(), reloaded.retained, prometheus.asked) == (["n", "a"], set(), [])


def test_a_missing_bracket_is_refused_without_asking_prometheus(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a") + USAGE)
    reloaded = ReloadedRules(tmp_path)
    write(tmp_path, a=(rules("a") + USAGE).replace(">>})\n", ">>}\n"))
    reloaded.look()
    assert (reloaded.serves(), reloaded.retained) == (["a"], {"rules[0]", "resourceRules.cpu"})
    assert not reloaded.is_well
