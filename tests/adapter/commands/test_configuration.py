"""Rule files: what stops the start, what refuses only one rule, and changes while the program runs."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import pytest

from demo.machine.files import replace_file
from tests.adapter.commands.harness import OBJECTS, OPEN_RULE, QUEUE_RULE, SHOP
from tests.support.caller import CUSTOM, EXTERNAL, Answer
from tests.support.forked import run
from tests.support.harnesses import NAMESPACES, PODS
from tests.support.serving import Trust, eventually, running_adapter, serving_flags

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

WEB = {"labelSelector": "app=web"}
GOOD = f"rules:\n{OPEN_RULE}\nexternalRules:\n{QUEUE_RULE}"
WITHOUT_QUEUE = f"rules:\n{OPEN_RULE}\n"

# Written line by line, so that the line numbers can be compared.
FLAWED = f"""\
rules:
- seriesQuery: 'open_connections{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'a{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'b{{namespace!="",pod!=""}}'
  resources: {PODS}
  name: {{matches: '^(?!b)(.*)$'}}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: 'c{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
- seriesQuery: 'd{{namespace!="",pod!=""}}'
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatcher>>}})'
- seriesQuery: 'e{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, gadget: {{group: example.com, resource: gadget}}}}}}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
externalRule:
- seriesQuery: 'queue_depth{{namespace!=""}}'
externalRules:
- seriesQuery: 'queue_depth{{namespace!=""}}'
  resources: {NAMESPACES}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("rules: [\n- a: b\n", 2),
        ("rules:\n\t- a\n", 2),
        ("rules: []\nexternalRules: []\nrules: []\n", 3),
        ("# rules\n- seriesQuery: a\n", 2),
    ],
    ids=["a list without end", "a tab", "a key of the top level twice", "no mapping"],
)
def test_an_unusable_rule_file_is_one_line_and_exit_2(tmp_path: Path, trust: Trust, text: str, line: int) -> None:
    ended = run("serve", *serving_flags(tmp_path, "http://127.0.0.1:9", text, {}), *trust.flags())
    assert (ended.code, ended.out) == (2, "")
    assert ended.error.startswith(f"tidewatch-adapter: {tmp_path / 'rules.yaml'}:{line}: ")
    assert ended.error.count("\n") == 1
    assert ended.error.endswith("\n")


def test_a_broken_file_of_a_folder_stops_neither_the_start_nor_the_other_files(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    folder = tmp_path / "folder"
    replace_file(folder / "a.yaml", WITHOUT_QUEUE)
    replace_file(folder / "b.yaml", "externalRules: [")
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=folder) as adapter,
        adapter.caller() as caller,
    ):
        (said,) = adapter.said(rf" ERROR .*{folder}/b\.yaml:[0-9]+: .*; nothing is served from it")
        assert "code=unreadable-file" in said
        assert len(caller.pods("open_connections", **WEB).values) == 3
        assert adapter.metric("tidewatch_adapter_config_last_reload_successful") == 0
        eventually(lambda: adapter.plain("/readyz").status == 200)
        replace_file(folder / "b.yaml", f"externalRules:\n{QUEUE_RULE}")
        eventually(lambda: caller.external("queue_depth").status == 200)
        eventually(lambda: adapter.metric("tidewatch_adapter_config_last_reload_successful") == 1)


def test_a_missing_file_is_one_line_and_exit_2(tmp_path: Path, trust: Trust) -> None:
    missing = tmp_path / "missing.yaml"
    ended = run("serve", *serving_flags(tmp_path, "http://127.0.0.1:9", missing, {}), *trust.flags())
    assert ended.code == 2
    assert ended.error == (
        f"tidewatch-adapter: {missing}: cannot read the file: No such file or directory: "
        "check that it exists and is readable\n"
    )


def test_each_flawed_rule_is_one_log_line_and_the_good_rules_are_served(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=FLAWED) as adapter,
        adapter.caller() as caller,
    ):
        for line, code, words in (
            (7, "unknown-key", "metricsQuery"),
            (10, "bad-regex", "(?!"),
            (15, "bad-yaml", "metricsQuery"),
            (18, "bad-template", "LabelMatcher"),
            (20, "unknown-resource", "gadget"),
            (22, "unknown-key", "externalRules"),
        ):
            (said,) = adapter.said(rf" ERROR .*{tmp_path}/rules\.yaml:{line}: ")
            assert words in said
            assert f"code={code}" in said
        assert len(caller.pods("open_connections", **WEB).values) == 3
        assert len(caller.external("queue_depth").items) == 3
        assert caller.listed() == {"pods/open_connections", "namespaces/open_connections"}
        assert adapter.metric("tidewatch_adapter_rules", state="ok") == 2
        assert adapter.metric("tidewatch_adapter_rules", state="refused") == 5
        eventually(lambda: adapter.plain("/readyz").status == 200)


@pytest.mark.parametrize("text", ["", "rules: []\nexternalRules:\n"], ids=["no text", "no rules"])
def test_an_empty_file_serves_nothing_with_a_warning(tmp_path: Path, trust: Trust, text: str) -> None:
    with (
        running_adapter(tmp_path, trust, prometheus_url="http://127.0.0.1:9", rules=text, objects=OBJECTS) as adapter,
        adapter.caller() as caller,
    ):
        (said,) = adapter.said(r" WARNING .*code=empty-configuration")
        assert f"{tmp_path}/rules.yaml:1: " in said
        for path in (f"{CUSTOM}/v1beta1", f"{CUSTOM}/v1beta2", EXTERNAL):
            assert caller.get(path).document["resources"] == []
        assert caller.pods("open_connections", **WEB).status == 404
        eventually(lambda: adapter.plain("/readyz").status == 200)


def test_valid_changes_take_effect_without_losing_a_request_and_broken_ones_do_not(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    rules = tmp_path / "rules.yaml"
    over, answers = threading.Event(), list[Answer]()
    with SHOP.adapter(tmp_path, trust, prometheus, rules=GOOD) as adapter:

        def keep_requesting() -> None:
            with adapter.caller() as caller:
                while not over.is_set():
                    answers.append(caller.pods("open_connections", **WEB))

        def well() -> float:
            return adapter.metric("tidewatch_adapter_config_last_reload_successful")

        client = threading.Thread(target=keep_requesting)
        with adapter.caller() as caller:
            assert caller.external("queue_depth").status == 200
            client.start()
            try:
                replace_file(rules, WITHOUT_QUEUE)
                eventually(lambda: caller.external("queue_depth").status == 404)
                replace_file(rules, "rules: [")
                eventually(lambda: well() == 0)
                adapter.wait_for(rf" ERROR .*{rules}:[0-9]+: .*the last good rules stay in force")
                assert len(adapter.said(rf" ERROR .*{rules}:[0-9]+: .*the last good rules stay in force")) == 1
                replace_file(rules, f"{OPEN_RULE}\n# of which rules?")
                eventually(lambda: adapter.said(r" ERROR .*write the rules below `rules:`.*the last good rules stay"))
                rules.unlink()
                eventually(lambda: adapter.said(r" ERROR .*cannot read the file.*the last good rules stay in force"))
                assert caller.listed(EXTERNAL.rpartition("/")[0], "v1beta1") == set()
                replace_file(rules, GOOD)
                eventually(lambda: caller.external("queue_depth").status == 200)
                eventually(lambda: well() == 1)
            finally:
                over.set()
                client.join()
        assert {answer.status for answer in answers} == {200}
        assert all(len(answer.items) == 3 for answer in answers)
        eventually(lambda: adapter.metric("tidewatch_adapter_config_reloads_total", result="success") == 2)
        assert adapter.metric("tidewatch_adapter_config_reloads_total", result="failure") == 3


def test_a_mounted_config_map_is_reloaded_when_its_symlink_changes(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    mounted = tmp_path / "mounted"
    for number, text in ((1, WITHOUT_QUEUE), (2, GOOD)):
        replace_file(mounted / f"..version-{number}" / "config.yaml", text)
    (mounted / "..data").symlink_to("..version-1")
    (mounted / "config.yaml").symlink_to("..data/config.yaml")
    # The folder as a whole, whose hidden parts are not rules of their own.
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=mounted) as adapter,
        adapter.caller() as caller,
    ):
        assert caller.external("queue_depth").status == 404
        (mounted / "..new").symlink_to("..version-2")
        (mounted / "..new").replace(mounted / "..data")
        eventually(lambda: caller.external("queue_depth").status == 200)
        assert adapter.metric("tidewatch_adapter_rules", state="ok") == 2


def test_a_reload_keeps_the_values_of_unchanged_queries(tmp_path: Path, trust: Trust) -> None:
    """While Prometheus is down nothing can be read again, so the answers come from values that were kept."""
    with (
        SHOP.running(tmp_path, trust, rules=GOOD) as (prometheus, adapter),
        adapter.caller() as caller,
    ):
        before = caller.pods("open_connections", **WEB)
        assert caller.external("queue_depth").status == 200
        prometheus.kill()
        # The rule for pods on other lines, the other one with another query.
        other_queue = QUEUE_RULE.replace("'<<.Series>>{<<.LabelMatchers>>}'", "'sum(<<.Series>>{<<.LabelMatchers>>})'")
        replace_file(tmp_path / "rules.yaml", f"externalRules:\n{other_queue}\nrules:\n{OPEN_RULE}")
        eventually(lambda: adapter.metric("tidewatch_adapter_config_reloads_total", result="success") == 1)
        eventually(lambda: caller.external("queue_depth").status == 503)
        after = caller.pods("open_connections", **WEB)
        assert (after.status, after.values, after.warnings) == (200, before.values, [])
        path, by_hand = f"{CUSTOM}/v1beta2/namespaces/shop/pods/*/open_connections", [("User-Agent", "kubectl/v1.36.0")]
        (warning,) = eventually(lambda: caller.get(path, by_hand, WEB).warnings)
        assert re.fullmatch("this answer is [0-9]+ s old: Prometheus cannot be asked", warning)
