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
from adapter.metrics.rulebook.reload.last_good import says
from tests.support.readings import Reply, ScriptedPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer
    from adapter.foundation.sources.prometheus.errors import PrometheusError
    from adapter.metrics.rulebook.model import Rulebook

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


class House:
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


def said(caplog: pytest.LogCaptureFixture, pattern: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if re.search(pattern, record.getMessage())]


def test_the_last_good_version_of_a_refused_rule_outlives_the_worker(tmp_path: Path) -> None:
    kept = KeptContents()
    write(tmp_path, a=rules("a", "b"))
    house = House(tmp_path, kept=kept)
    # One rule is broken; meanwhile another one is changed, then broken too.
    for text in (rules("a") + RULE.format(name="b", query="7 +"), rules("c") + RULE.format(name="b", query="7 +")):
        write(tmp_path, a=text)
        house.look()
    write(tmp_path, a="rules:\n" + RULE.format(name="c", query="8 +") + RULE.format(name="b", query="7 +"))
    house.look()
    assert (house.serves(), house.retained) == (["c", "b"], {"rules[0]", "rules[1]"})
    after = House(tmp_path, kept=kept)
    assert (after.serves(), after.retained, after.is_well) == (house.serves(), house.retained, False)
    assert list(map(says, after.configuration.rulebook.rules)) == list(map(says, house.configuration.rulebook.rules))
    write(tmp_path, a=rules("c", "b"))
    after.look()
    assert (after.serves(), after.retained, after.is_well) == (["c", "b"], set(), True)


@pytest.mark.parametrize("broken", ["rules: [\n- a: b\n", "- a\n", "\x00"], ids=["no YAML", "no keys", "rubbish"])
def test_a_broken_file_beside_a_good_one_stops_neither_the_start_nor_changes(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a=rules("a"), b=broken)
    house = House(tmp_path)
    assert (house.serves(), house.is_well) == (["a"], False)
    assert len(said(caplog, r"b\.yaml:[0-9]+: .*; nothing is served from it$")) == 1
    write(tmp_path, a=rules("a", "n"))
    house.look()
    assert (house.serves(), house.is_well, house.reloads("partial")) == (["a", "n"], False, 1)
    assert len(said(caplog, r"b\.yaml")) == 1
    write(tmp_path, b=rules("b"))
    house.look()
    assert (house.serves(), house.is_well, house.reloads("success")) == (["a", "n", "b"], True, 1)


def test_what_a_broken_file_said_last_goes_on_while_others_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a=rules("a"), b=rules("b"), c=rules("c"))
    house = House(tmp_path)
    write(tmp_path, a=rules("n", "a"), b="rules: [")
    house.look()
    assert (house.serves(), house.is_well, house.reloads("partial")) == (["n", "a", "b", "c"], False, 1)
    assert house.retained == set()
    write(tmp_path, c=rules("c", "m"))
    house.look()
    assert house.serves() == ["n", "a", "b", "c", "m"]
    assert len(said(caplog, r"b\.yaml:2: .*; its last good rules stay in force$")) == 1
    (tmp_path / "b.yaml").unlink()
    house.look()
    assert (house.serves(), house.is_well) == (["n", "a", "c", "m"], True)


def test_a_file_from_which_a_whole_list_vanished_by_an_error_is_broken_by_itself(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"), b=rules("b"))
    house = House(tmp_path)
    write(tmp_path, a=rules("a", "n"), b=rules("b").replace("rules:", "rule:"))
    house.look()
    assert (house.serves(), house.is_well, house.reloads("partial")) == (["a", "n", "b"], False, 1)


def test_where_all_files_are_broken_there_is_no_start_and_no_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, a="rules: [", b="- x")
    with pytest.raises(FilesError, match=r"a\.yaml:2: .*\n.*b\.yaml:1: "):
        House(tmp_path)
    write(tmp_path, a=rules("a"), b=rules("b"))
    house = House(tmp_path)
    write(tmp_path, a="rules: [", b="- x")
    house.look()
    assert (house.serves(), house.is_well, house.reloads("failure")) == (["a", "b"], False, 1)
    for place in (r"a\.yaml:2", r"b\.yaml:1"):
        assert len(said(caplog, f"{place}: .*; the last good rules stay in force$")) == 1


def test_a_named_file_or_folder_that_is_gone_keeps_what_it_said_and_not_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder, b=rules("b"), c=rules("c"))
    write(tmp_path, a=rules("a"), d=rules("d"))
    house = House(tmp_path / "a.yaml", folder, tmp_path / "d.yaml")
    assert house.serves() == ["a", "b", "c", "d"]
    folder.rename(tmp_path / "away")
    (tmp_path / "d.yaml").unlink()
    write(tmp_path, a=rules("n"))
    house.look()
    assert (house.serves(), house.is_well) == (["n", "b", "c", "d"], False)
    assert len(said(caplog, "its last good rules stay in force$")) == 2
    with pytest.raises(FilesError, match="cannot read the file"):
        House(folder)


def test_a_file_that_is_named_twice_goes_on_as_often_as_it_did(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"), b=rules("b"))
    house = House(tmp_path, tmp_path / "a.yaml")
    assert house.serves() == ["a", "b", "a"]
    for broken in ("rules: [", "rules: {", rules("a").replace("rules:", "rule:")):
        write(tmp_path, a=broken)
        house.look()
        assert (house.serves(), house.is_well) == (["a", "b", "a"], False)


def test_resources_that_two_files_define_are_of_the_first_and_stop_no_change(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"), b=USAGE)
    house = House(tmp_path)
    write(tmp_path, a=rules("a", "n") + USAGE)
    house.look()
    assert (house.serves(), house.is_well, house.reloads("partial")) == (["a", "n"], False, 1)
    assert [rule.file for rule in house.configuration.rulebook.resource.rules] == [str(tmp_path / "a.yaml")]


def test_an_empty_folder_is_a_warning_and_is_served_when_it_is_filled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(tmp_path)
    assert said(caplog, rf"^{tmp_path}: no \*\.yaml in this folder, so nothing is served from it$")
    write(tmp_path, a=rules("a") + USAGE)
    caplog.set_level("INFO")
    house.look()
    assert house.serves() == ["a"]
    (record,) = (record for record in caplog.records if "are in force" in record.getMessage())
    assert vars(record)["fields"]["rules"] == 2


def test_a_change_that_cannot_be_applied_is_none_and_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"))
    house = House(tmp_path)
    house.fault = RuntimeError("a fault")
    write(tmp_path, a=rules("n"))
    house.configuration.check()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="a fault"):
            house.configuration.check()
        assert (house.serves(), house.is_well, house.applied) == (["a"], False, [])
    house.fault = None
    house.configuration.check()
    assert (house.serves(), house.is_well, len(house.applied), house.reloads("success")) == (["n"], True, 1, 1)
    house.look()
    assert len(house.applied) == 1


class Prometheus(ScriptedPrometheus):
    """A Prometheus that evaluates a query at some moment if the query names none."""

    def instant(self, query: str, *, timeout_seconds: float, at: float | None = None) -> InstantAnswer:
        assert timeout_seconds <= TRIAL_SECONDS
        return super().instant(query, timeout_seconds=timeout_seconds, at=at or 1000.0)


def refuses_later(query: str) -> Reply | PrometheusError:
    refused = "later" in query or query.count("{") != query.count("}")
    return QueryRefusedError(query, "bad_data", "parse error: unexpected") if refused else Reply()


def unreachable(query: str) -> PrometheusError:
    return PrometheusUnreachableError(query, "nobody there")


def fails_now(query: str) -> PrometheusError:
    return QueryRefusedError(query, "execution", "found duplicate series")


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [(refuses_later, True), (lambda _: Reply(), False), (unreachable, False), (fails_now, False)],
    ids=["refused", "taken", "unreachable", "not for its text"],
)
def test_of_a_query_that_cannot_be_read_here_prometheus_says_whether_it_is_a_typo(
    tmp_path: Path, answer: Callable[[str], Reply | PrometheusError], *, is_kept: bool
) -> None:
    write(tmp_path, a=rules("a") + USAGE)
    prometheus = Prometheus(answer)
    house = House(tmp_path, prometheus=prometheus)
    before = house.configuration.rulebook
    write(
        tmp_path, a=rules("a", query=LATER) + USAGE.replace("{<<.LabelMatchers>>})", "{<<.LabelMatchers>>}) over later")
    )
    house.look()
    now = house.configuration.rulebook
    assert prometheus.asked
    assert house.serves() == ["a"]
    assert house.retained == ({"rules[0]", "resourceRules.cpu"} if is_kept else set())
    assert (list(map(says, now.rules)) == list(map(says, before.rules))) is is_kept
    assert house.is_well is not is_kept
    assert [finding.code for finding in now.findings].count("query-refused") == 2 * is_kept


def test_a_query_that_prometheus_refused_stays_refused_while_it_cannot_be_asked(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a", "b"))
    prometheus = Prometheus(refuses_later)
    house = House(tmp_path, prometheus=prometheus)
    typo = rules("a", query=LATER) + rules("b").partition("\n")[2]
    write(tmp_path, a=typo)
    house.look()
    assert house.retained == {"rules[0]"}
    prometheus.answer = unreachable
    write(tmp_path, a=typo + rules("c").partition("\n")[2])
    house.look()
    assert (house.serves(), house.retained) == (["a", "b", "c"], {"rules[0]"})
    prometheus.answer = lambda _: Reply()
    write(tmp_path, a=typo)
    house.look()
    assert (house.serves(), house.retained, house.is_well) == (["a", "b"], set(), True)


def test_of_many_refused_queries_only_the_last_ones_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MOST_REFUSED", 1)
    write(tmp_path, a=rules("a"))
    prometheus = Prometheus(refuses_later)
    house = House(tmp_path, prometheus=prometheus)
    for query in (LATER, f"{LATER} still"):
        write(tmp_path, a=rules("a", query=query))
        house.look()
    assert house.retained == {"rules[0]"}
    prometheus.answer = unreachable
    write(tmp_path, a=rules("a", "b", query=f"{LATER} still"))
    house.look()
    assert house.retained == {"rules[0]"}
    write(tmp_path, a=rules("a", query=LATER))
    house.look()
    assert house.retained == set()


def test_a_query_that_only_some_askers_complete_is_not_tried(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"))
    prometheus = Prometheus(refuses_later)
    house = House(tmp_path, prometheus=prometheus)
    write(
        tmp_path, a=rules("a", query="quantile(<<.LabelValuesByName.q>>, <<.Series>>{<<.LabelMatchers>>}) over later")
    )
    house.look()
    assert (house.retained, house.is_well, prometheus.asked) == (set(), True, [])


def test_a_series_query_that_cannot_be_read_here_is_tried_too(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a"))
    house = House(tmp_path, prometheus=Prometheus(refuses_later))
    write(tmp_path, a=rules("a").replace('namespace!=""}', 'namespace!=""'))
    house.look()
    assert (house.serves(), house.retained) == (["a"], {"rules[0]"})


def test_what_is_in_force_can_be_read_or_stood_there_at_the_start_is_not_asked_about(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a", query=LATER))
    prometheus = Prometheus(refuses_later)
    house = House(tmp_path, prometheus=prometheus)
    write(tmp_path, a=rules("n") + rules("a", query=LATER).partition("\n")[2])
    house.look()
    assert (house.serves(), house.retained, prometheus.asked) == (["n", "a"], set(), [])


def test_a_bracket_that_is_missing_is_refused_without_asking_anybody(tmp_path: Path) -> None:
    write(tmp_path, a=rules("a") + USAGE)
    house = House(tmp_path)
    write(tmp_path, a=(rules("a") + USAGE).replace(">>})\n", ">>}\n"))
    house.look()
    assert (house.serves(), house.retained) == (["a"], {"rules[0]", "resourceRules.cpu"})
    assert not house.is_well
