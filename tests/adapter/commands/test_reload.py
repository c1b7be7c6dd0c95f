"""Rules that change while the program runs: valid ones take effect, and broken ones keep their last good version."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from demo.machine.files import replace_file
from tests.adapter.commands.harness import OPEN_RULE, QUEUE_RULE, SHOP
from tests.support.caller import EXTERNAL, Answer
from tests.support.harnesses import NAMESPACES, PODS
from tests.support.serving import Adapter, Trust, eventually
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

WEB = {"labelSelector": "app=web"}
RELOADED_WITHIN_SECONDS = 15.0
"""The documented limit; a reload usually takes less."""

TOTAL_RULE = f"""
- seriesQuery: 'queue_depth{{namespace!=""}}'
  name: {{as: queue_total}}
  resources: {NAMESPACES}
  metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'
"""
SELDOM = "  refresh: 600s\n"
KEPT_RULE = f"""
- seriesQuery: 'open_connections{{namespace!="",pod!=""}}'
  name: {{as: seldom_asked}}
  resources: {PODS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}}) + 0'
{SELDOM}"""


def external(*rules: str) -> str:
    return f"externalRules:\n{''.join(rules)}"


def broken(rule: str) -> str:
    assert "metricsQuery" in rule
    return rule.replace("metricsQuery: '", "metricsQuery: '<<.Nonsense>>")


def by_hand(caller: Caller, metric: str) -> Answer:
    """Send a request as a person with kubectl does."""
    return caller.get(f"{EXTERNAL}/namespaces/shop/{metric}", [("User-Agent", "kubectl/v1.36.0 (linux/amd64)")])


def states(adapter: Adapter) -> dict[str, float]:
    names = ("ok", "refused", "retained", "failing")
    return {name: adapter.metric("tidewatch_adapter_rules", state=name) for name in names}


def reloads(adapter: Adapter) -> dict[str, float]:
    names = ("success", "partial", "failure")
    return {name: adapter.metric("tidewatch_adapter_config_reloads_total", result=name) for name in names}


def is_well(adapter: Adapter) -> bool:
    return adapter.metric("tidewatch_adapter_config_last_reload_successful") == 1


def change(adapter: Adapter, rules: Path, text: str, result: str) -> None:
    """Write a file, and wait until its reload has ended with that result."""
    before = reloads(adapter)[result]
    replace_file(rules, text)
    until(lambda: reloads(adapter)[result] == before + 1, RELOADED_WITHIN_SECONDS)


def test_a_rule_that_a_change_broke_keeps_its_last_good_version(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    rules = tmp_path / "rules.yaml"
    good = external(QUEUE_RULE, TOTAL_RULE)
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=good) as adapter,
        adapter.caller() as caller,
    ):
        assert (is_well(adapter), reloads(adapter)) == (True, {"success": 0, "partial": 0, "failure": 0})
        assert by_hand(caller, "queue_depth").warnings == []
        only_total_holds = external(broken(QUEUE_RULE), TOTAL_RULE)
        change(adapter, rules, only_total_holds, "partial")
        assert not is_well(adapter)
        assert states(adapter) == {"ok": 1, "refused": 1, "retained": 1, "failing": 0}
        adapter.wait_for(r" ERROR .*rules\.yaml:5: .*code=bad-template")
        adapter.wait_for(r" WARNING .*its last good version stays in force")
        (said,) = adapter.said(r" WARNING .*its last good version stays in force")
        assert f"rule=externalRules[0] file={rules} line=3 state=retained" in said

        answer = by_hand(caller, "queue_depth")
        assert len(answer.items) == 3
        (warning,) = answer.warnings
        assert "externalRules[0], rules.yaml:3" in warning
        assert "its last good version is used" in warning
        assert by_hand(caller, "queue_total").warnings == []
        # The HPA controller would log each warning.
        to_controller = caller.external("queue_depth")
        assert (len(to_controller.items), to_controller.warnings) == (3, [])

        change(adapter, rules, external(TOTAL_RULE, KEPT_RULE.replace(PODS, NAMESPACES), broken(QUEUE_RULE)), "partial")
        assert states(adapter) == {"ok": 2, "refused": 1, "retained": 1, "failing": 0}
        assert "externalRules[2]" in by_hand(caller, "queue_depth").warnings[0]
        # What is new wins the name, and what is deleted is gone.
        named_as_it = QUEUE_RULE + "  name: {as: queue_depth}\n"
        change(adapter, rules, external(named_as_it, broken(QUEUE_RULE)), "partial")
        assert by_hand(caller, "queue_depth").warnings == []
        change(adapter, rules, external(TOTAL_RULE, broken(QUEUE_RULE)), "partial")
        change(adapter, rules, external(TOTAL_RULE), "success")
        assert is_well(adapter)
        assert by_hand(caller, "queue_depth").status == 404
        assert states(adapter) == {"ok": 1, "refused": 0, "retained": 0, "failing": 0}


def test_two_broken_rules_keep_their_last_good_versions_and_one_that_was_never_valid_is_refused(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    rules = tmp_path / "rules.yaml"
    never_good = broken(QUEUE_RULE).replace("queue_depth", "queue_never")
    good = f"rules:\n{OPEN_RULE}\n{external(never_good, QUEUE_RULE, TOTAL_RULE)}"
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=good) as adapter,
        adapter.caller() as caller,
    ):
        assert not is_well(adapter)
        assert states(adapter) == {"ok": 3, "refused": 1, "retained": 0, "failing": 0}
        text = f"rules:\n{broken(OPEN_RULE)}\n{external(never_good, broken(QUEUE_RULE), TOTAL_RULE)}"
        change(adapter, rules, text, "partial")
        assert states(adapter) == {"ok": 1, "refused": 3, "retained": 2, "failing": 0}
        assert len(caller.pods("open_connections", **WEB).values) == 3
        assert len(caller.external("queue_depth").items) == 3
        assert caller.external("queue_never").status == 404
        # It cannot be decided which of the two it was.
        change(adapter, rules, external("\n- seriesQuery: ''\n"), "partial")
        adapter.wait_for(r" ERROR .*it is unclear which of the removed rules it was before.* state=refused")
        assert {caller.external(name).status for name in ("queue_depth", "queue_total")} == {404}
        change(adapter, rules, good, "partial")
        assert len(caller.external("queue_depth").items) == 3


def test_a_typo_in_a_query_does_not_remove_a_working_metric(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    """The first typo is found by any parser; the second text cannot be parsed here, and Prometheus refuses it too."""
    rules = tmp_path / "rules.yaml"
    good = external(QUEUE_RULE, TOTAL_RULE)
    without_bracket = good.replace("'sum(<<.Series>>{<<.LabelMatchers>>})'", "'sum(<<.Series>>{<<.LabelMatchers>>}'")
    unknown_word = good.replace("{<<.LabelMatchers>>})'", "{<<.LabelMatchers>>}) over later'")
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=good) as adapter,
        adapter.caller() as caller,
    ):
        for text, code in ((without_bracket, "unbalanced-query"), (unknown_word, "query-refused")):
            assert text != good
            change(adapter, rules, text, "partial")
            assert not is_well(adapter)
            assert states(adapter) == {"ok": 1, "refused": 1, "retained": 1, "failing": 0}
            adapter.wait_for(rf" ERROR .*rules\.yaml:[0-9]+: .*code={code}")
            assert len(caller.external("queue_total").items) == 1
        change(adapter, rules, good, "success")
        assert is_well(adapter)


@contextmanager
def requested_continuously(adapter: Adapter) -> Iterator[list[Answer]]:
    """Request one metric again and again, and yield the list of the answers."""
    over, answers = threading.Event(), list[Answer]()

    def keep_requesting() -> None:
        with adapter.caller() as caller:
            while not over.wait(0.01):
                answers.append(caller.pods("seldom_asked", **WEB))

    client = threading.Thread(target=keep_requesting)
    client.start()
    try:
        yield answers
    finally:
        over.set()
        client.join()


def test_changes_of_a_mounted_folder_under_load_lose_no_request_and_repeat_no_query(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    """The metric of the rule that never changes costs one query, whatever else changes."""
    mounted = tmp_path / "mounted"
    number = 0

    def mount(**files: str) -> None:
        """Mount other files as the kubelet does: a new folder, to which a link is switched."""
        nonlocal number
        number += 1
        version = mounted / f"..version-{number}"
        for name, text in files.items():
            replace_file(version / f"{name}.yaml", text)
            link = mounted / f"{name}.yaml"
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}.yaml")
        (mounted / "..new").symlink_to(version.name)
        (mounted / "..new").replace(mounted / "..data")
        for link in mounted.glob("*.yaml"):
            if link.stem not in files:
                link.unlink()

    def queries() -> float:
        return adapter.metric("tidewatch_adapter_prometheus_queries_total", kind="instant")

    kept = f"rules:\n{KEPT_RULE}"
    mount(kept=kept)
    flags = ("--max-answer-age=1h", "--metrics-relist-interval=10m")
    with (
        SHOP.adapter(tmp_path, trust, prometheus, *flags, rules=mounted) as adapter,
        adapter.caller() as caller,
    ):
        first = caller.pods("seldom_asked", **WEB)
        asked = queries()
        with requested_continuously(adapter) as answers:
            mount(kept=kept, queue=external(QUEUE_RULE + SELDOM))
            until(lambda: caller.external("queue_depth").status == 200, RELOADED_WITHIN_SECONDS)
            mount(kept=kept, renamed=external(QUEUE_RULE + SELDOM, TOTAL_RULE + SELDOM))
            until(lambda: caller.external("queue_total").status == 200, RELOADED_WITHIN_SECONDS)
            # Another number, and another line.
            mount(aaa=f"# rules\nrules:\n{OPEN_RULE}{SELDOM}", kept=f"\n\n{kept}")
            until(lambda: caller.external("queue_depth").status == 404, RELOADED_WITHIN_SECONDS)
            assert caller.pods("open_connections", **WEB).status == 200
            mount(kept=kept.replace("metricsQuery", "metricQuery"))
            until(lambda: reloads(adapter)["partial"] == 1, RELOADED_WITHIN_SECONDS)
            eventually(lambda: len(answers) > 50)
        assert {answer.status for answer in answers} == {200}
        assert {answer.evaluated_at for answer in answers} == {first.evaluated_at}
        assert reloads(adapter) == {"success": 3, "partial": 1, "failure": 0}
        # One for each of the other metrics that were requested, and none again for the one that stayed.
        assert queries() - asked == 3
        names = {line.partition("{")[0] for line in adapter.plain("/metrics").text.splitlines()}
        assert "tidewatch_adapter_rule_last_success_timestamp_seconds" in names


def test_unusable_files_leave_the_rules_in_force_unchanged(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    rules = tmp_path / "rules.yaml"
    good = external(QUEUE_RULE)
    with (
        SHOP.adapter(tmp_path, trust, prometheus, rules=good) as adapter,
        adapter.caller() as caller,
    ):
        for text in (
            good[: good.rindex("}}")],
            "\x00\x01 garbage " * 80_000,
            "a b: c: [" * 120_000,
            good.replace("externalRules", "externalRule"),
        ):
            change(adapter, rules, text, "failure")
            assert not is_well(adapter)
            assert len(caller.external("queue_depth").items) == 3
            assert by_hand(caller, "queue_depth").warnings == []
        adapter.wait_for(r" ERROR .*externalRule.*all rules of one kind vanished.*the last good rules stay in force")
        # As Windows' editors write it.
        rules.write_bytes(b"\xef\xbb\xbf" + external(QUEUE_RULE, TOTAL_RULE).replace("\n", "\r\n").encode())
        eventually(lambda: caller.external("queue_total").status == 200)
        eventually(lambda: is_well(adapter))
        assert states(adapter) == {"ok": 2, "refused": 0, "retained": 0, "failing": 0}
