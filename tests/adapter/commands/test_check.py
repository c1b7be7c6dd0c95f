"""`tidewatch-adapter check` as its users run it: its output, its exit status, its JSON, and its repairs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adapter.commands.check.command import check as check_command
from tests.adapter.commands.checked_rules import GOOD, MENDABLE, check
from tests.adapter.commands.harness import RULES
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.forked import run
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.forked import Ended


def document(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_good_rules_are_one_line_and_exit_0(tmp_path: Path) -> None:
    ended = check(tmp_path, GOOD)

    assert (ended.code, ended.error) == (0, "")
    assert ended.out == f"1 rule in {tmp_path}/rules.yaml: 0 errors, 0 warnings\n"


def test_the_output_format_table_is_an_alias_of_text(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD, "-o", "table").out == check(tmp_path, GOOD, "-o", "text").out != ""


def test_a_finding_is_shown_with_its_line_a_caret_and_its_repair(tmp_path: Path) -> None:
    ended = check(tmp_path, GOOD.replace("pod: {resource: pod}", "pod: {resource: pdo}"))

    assert ended.code == 1
    place, line, caret, fix, *_ = ended.out.splitlines()
    assert place.startswith(f"{tmp_path}/rules.yaml:3:")
    assert ": error[unknown-resource]: no resource 'pdo'" in place
    assert line[caret.index("^") :].startswith("pdo}")
    assert fix.strip().startswith("fix: ")


def test_warnings_alone_exit_0(tmp_path: Path) -> None:
    ended = check(tmp_path, GOOD.replace("sum by (<<.GroupBy>>)", "sum"))

    assert ended.code == 0
    assert "warning[no-group-by]" in ended.out
    assert ended.out.endswith("0 errors, 1 warning\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param((), "give either --config", id="nothing to check"),
        pytest.param(("--config=/nowhere/rules.yaml",), "/nowhere/rules.yaml", id="no such file"),
        pytest.param(("--configmap=rules",), "write NAMESPACE/NAME", id="a ConfigMap without a namespace"),
        pytest.param(("--configmap=a/b", "--fix"), "--fix changes files", id="a ConfigMap cannot be mended"),
        pytest.param(
            ("--config=x", "--output=xml"), "'xml' is not allowed: write text, table or json", id="another format"
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(arguments: tuple[str, ...], words: str) -> None:
    ended = run("check", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.error.startswith("tidewatch-adapter: ")
    assert words in ended.error
    assert ended.error.count("\n") == 1


def test_a_file_that_is_not_yaml_is_exit_2_with_its_line(tmp_path: Path) -> None:
    ended = check(tmp_path, "rules: [\n")

    assert (ended.code, ended.out) == (2, "")
    assert ended.error.startswith(f"tidewatch-adapter: {tmp_path}/rules.yaml:")


def test_a_broken_file_is_an_error_of_that_file_and_the_others_are_checked(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("rules: [\n")
    (tmp_path / "b.yaml").write_bytes(b"rules: \xff")
    (tmp_path / "rules.yaml").write_text(GOOD.replace("sum by (<<.GroupBy>>)", "sum"))
    ended = run("check", f"--config={tmp_path}")

    assert (ended.code, ended.error) == (1, "")
    assert f"{tmp_path}/a.yaml:2:1: error[unreadable-file]: this is not YAML: " in ended.out
    assert f"{tmp_path}/b.yaml:1:1: error[unreadable-file]: byte 7 is not UTF-8\n" in ended.out
    assert f"{tmp_path}/rules.yaml:4:17: warning[no-group-by]" in ended.out
    assert ended.out.endswith(f"1 rule in {tmp_path}/rules.yaml: 2 errors, 1 warning\n")


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_folder_without_rule_files_is_exit_2(tmp_path: Path, command: str) -> None:
    (tmp_path / "rules.yml").write_text(GOOD)
    ended = run(command, *(["pods/x", "-n", "shop"] if command == "explain" else []), f"--config={tmp_path}")

    assert (ended.code, ended.out) == (2, "")
    assert ended.error == (f"tidewatch-adapter: {tmp_path}: no *.yaml in this folder: name a file or another folder\n")


def test_the_json_report_has_the_documented_fields(tmp_path: Path) -> None:
    ended = check(tmp_path, GOOD + "- seriesQuery: '['\n", "-o", "json")
    found = document(ended)

    assert ended.code == 1
    assert (found["apiVersion"], found["kind"]) == ("tidewatch.io/v1alpha1", "RulebookReport")
    assert found["files"] == [f"{tmp_path}/rules.yaml"]
    assert found["errors"] == sum(rule["status"] == "error" for rule in found["rules"]) + 1
    good, bad = found["rules"]
    assert good == {
        "id": "rules[0]",
        "api": "custom",
        "file": f"{tmp_path}/rules.yaml",
        "line": 2,
        "status": "ok",
        "plan": "wide",
        "plan_reason": "proven",
        "policy": {
            "on_no_data": None,
            "no_data_value": None,
            "max_sample_age_seconds": None,
            "refresh_seconds": None,
            "window_seconds": None,
        },
        "findings": [],
        "metrics": None,
    }
    assert (bad["id"], bad["status"]) == ("rules[1]", "error")
    assert (bad["plan"], bad["plan_reason"], bad["policy"]) == (None, None, None)
    assert {finding["code"] for finding in bad["findings"]} >= {"missing-key", "no-resources"} - {"no-resources"}
    assert all(
        finding.keys() == {"severity", "code", "line", "column", "message", "fix"} for finding in bad["findings"]
    )


def test_fix_repairs_mechanical_mistakes_and_leaves_the_rest_of_the_file(tmp_path: Path) -> None:
    before = check(tmp_path, MENDABLE)
    assert before.code == 1
    ended = check(tmp_path, MENDABLE, "--fix")

    assert ended.code == 0
    assert ended.out.startswith("fixed 2 findings\n")
    text = (tmp_path / "rules.yaml").read_text()
    assert text == MENDABLE.replace("metricQuery", "metricsQuery").replace("$1_per_second", "'${1}_per_second'")
    assert "namespaced-ignored" in ended.out, "its line holds a comment, which nobody may throw away"
    assert [file.name for file in tmp_path.iterdir()] == ["rules.yaml"]


def test_a_file_that_cannot_be_replaced_is_exit_2_and_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(MENDABLE)

    def refuse(_from: str, _to: str, **_folders: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    monkeypatch.setattr("adapter.commands.check.command.configure_logs_by", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        check_command([f"--config={file}", "--fix"])
    assert ended.value.code == 2
    assert f"{file}: cannot be fixed: Permission denied: check that its folder" in capsys.readouterr().err
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("rules.yaml", MENDABLE)]


def test_fix_removes_a_line_that_contains_only_an_ignored_key(tmp_path: Path) -> None:
    rules = MENDABLE.replace("   # as the old program had it", "")
    ended = check(tmp_path, rules, "--fix")

    assert "namespaced" not in (tmp_path / "rules.yaml").read_text()
    assert ended.out.startswith("fixed 3 findings\n")


def test_with_prometheus_the_metrics_of_each_rule_are_listed(tmp_path: Path, prometheus: PrometheusProcess) -> None:
    ended = check(tmp_path, RULES, "-o", "json", f"--prometheus-url={prometheus.url}", "--metrics-max-age=10m")
    rules = {rule["id"]: rule for rule in document(ended)["rules"]}
    pods = {metric["name"]: metric for metric in rules["rules[0]"]["metrics"]}

    assert pods["pods/open_connections"] == {
        "name": "pods/open_connections",
        "namespaced": True,
        "series": 8,
        "query": 'sum by (namespace,pod) (open_connections{namespace!="",pod!=""})',
        "times_query": None,
    }
    assert pods["namespaces/open_connections"]["namespaced"] is False
    assert {metric["name"] for metric in rules["rules[1]"]["metrics"]} >= {"pods/odd", "pods/twice"}
    assert [metric["series"] for metric in rules["externalRules[0]"]["metrics"]] == [4]
    unseen = {metric["name"]: metric["series"] for metric in rules["rules[2]"]["metrics"]}
    assert unseen == {"namespaces/never_seen": 0, "pods/never_seen": 0}
    assert [finding["code"] for finding in rules["rules[2]"]["findings"]] == ["no-series"]


def test_the_policy_of_a_rule_and_its_query_for_sample_times_are_shown(
    tmp_path: Path, prometheus: PrometheusProcess
) -> None:
    rules = f"{GOOD}  onNoData: 500m\n  maxSampleAge: 90s\n  refresh: 30s\n  window: 2m\n"
    asking = (f"--prometheus-url={prometheus.url}", "--metrics-max-age=10m")
    (rule,) = document(check(tmp_path, rules, "-o", "json", *asking))["rules"]

    assert rule["policy"] == {
        "on_no_data": "value",
        "no_data_value": 0.5,
        "max_sample_age_seconds": 90,
        "refresh_seconds": 30,
        "window_seconds": 120,
    }
    assert rule["findings"] == [], "Prometheus takes both queries"
    times = {metric["times_query"] for metric in rule["metrics"] if metric["name"] == "pods/open_connections"}
    assert times == {'min by (namespace,pod) (timestamp(open_connections{namespace!="",pod!=""}))'}
    text = check(tmp_path, rules, *asking).out
    assert "    policy: onNoData 500m, maxSampleAge 90s, refresh 30s, window 120s\n" in text
    assert "    query for the times of its samples: min by (" in text


def test_a_sample_age_limit_that_cannot_be_enforced_is_an_error(tmp_path: Path) -> None:
    ended = check(
        tmp_path, f"{GOOD.replace('<<.LabelMatchers>>}', '<<.LabelMatchers>>} offset 1m')}  maxSampleAge: 90s\n"
    )

    assert ended.code == 1
    assert "error[sample-age-not-checked]" in ended.out


def test_a_query_that_prometheus_refuses_is_an_error_of_its_rule(tmp_path: Path, prometheus: PrometheusProcess) -> None:
    rules = GOOD.replace("sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", "no_such_function(<<.Series>>)")
    ended = check(tmp_path, rules, f"--prometheus-url={prometheus.url}", "--metrics-max-age=10m")

    assert ended.code == 1
    assert "error[query-refused]" in ended.out
    assert "no_such_function" in ended.out


@pytest.mark.parametrize(
    ("query", "severity"),
    [
        pytest.param("quantile(<<.LabelValuesByName.q>>, <<.Series>>{<<.LabelMatchers>>})", "warning", id="number"),
        pytest.param('rate(<<.Series>>[<<index .LabelValuesByName "window">>])', "warning", id="duration"),
        pytest.param("quantile(<<.LabelValuesByName.q>>, no_such_function(<<.Series>>))", "error", id="wrong for all"),
        pytest.param("sum(<<.Series>>{<<.LabelMatchers>>}[5m])", "error", id="without a value of the selector"),
    ],
)
def test_a_query_that_needs_a_selector_is_tried_with_one(
    tmp_path: Path, prometheus: PrometheusProcess, query: str, severity: str
) -> None:
    rules = GOOD.replace("sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})", query)
    ended = check(tmp_path, rules, f"--prometheus-url={prometheus.url}", "--metrics-max-age=10m")

    assert f"{severity}[query-refused]: Prometheus refuses the query of" in ended.out
    assert ended.code == (severity == "error")


def test_a_prometheus_that_cannot_be_reached_is_an_error_and_lints_are_still_reported(tmp_path: Path) -> None:
    ended = check(tmp_path, GOOD.replace("sum by (<<.GroupBy>>)", "sum"), "--prometheus-url=http://127.0.0.1:9")

    assert ended.code == 1
    assert "error[not-asked]" in ended.out
    assert "warning[no-group-by]" in ended.out


def test_a_prometheus_error_that_all_rules_share_is_reported_once(tmp_path: Path) -> None:
    """60 rules of different series fail alike, and one of them has a finding of its own."""
    rule = GOOD.removeprefix("rules:\n")
    rules = "rules:\n" + "".join(rule.replace("open_connections", f"open_{number}") for number in range(60))
    url = "--prometheus-url=http://127.0.0.1:9"
    ended = check(tmp_path, rules.replace("sum by (<<.GroupBy>>)", "sum", 1), url)

    assert ended.code == 1
    assert (ended.out.count("not-asked"), ended.out.count("no-group-by")) == (1, 1)
    assert "the same for 59 other rules (-o json lists all)\n" in ended.out
    assert ended.out.endswith("60 errors, 1 warning\n")
    assert len(ended.out.splitlines()) < 15
    of_rules = document(check(tmp_path, rules, "-o", "json", url))["rules"]
    assert [rule["status"] for rule in of_rules] == ["error"] * 60


def test_a_configmap_is_read_from_the_cluster(tmp_path: Path) -> None:
    with ObjectApiServer() as cluster:
        cluster.objects.put(CONFIG_MAPS, "monitoring", "rules", {"data": {"a.yaml": GOOD, "b.txt": "no rules"}})
        kubeconfig = f"--kubeconfig={cluster.kubeconfig(tmp_path / 'kubeconfig')}"
        found = run("check", "--configmap=monitoring/rules", kubeconfig)
        missing = run("check", "--configmap=monitoring/other", kubeconfig)

    assert (found.code, found.error) == (0, "")
    assert found.out == "1 rule in monitoring/rules:a.yaml: 0 errors, 0 warnings\n"
    assert missing.code == 2
    assert "monitoring/configmaps/other" in missing.error


def test_values_of_a_chart_in_a_configmap_of_the_cluster_are_no_rule_file(tmp_path: Path) -> None:
    with ObjectApiServer() as cluster:
        values = "rules: {custom: [{seriesQuery: queue_depth}]}\n"
        cluster.objects.put(CONFIG_MAPS, "monitoring", "rules", {"data": {"a.yaml": values}})
        kubeconfig = f"--kubeconfig={cluster.kubeconfig(tmp_path / 'kubeconfig')}"
        ended = run("check", "--configmap=monitoring/rules", kubeconfig)

    assert (ended.code, ended.out) == (2, "")
    assert "monitoring/rules:a.yaml:1: these are values of a chart, not a rule file: " in ended.error


def test_without_a_cluster_a_rule_for_a_custom_resource_that_may_have_no_namespace_is_only_doubted(
    tmp_path: Path,
) -> None:
    found = check(
        tmp_path,
        """rules:
- seriesQuery: tenant_quota
  resources: {overrides: {tenant: {group: example.com, resource: tenants}}}
  metricsQuery: sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})
""",
    )
    assert found.code == 0
    doubt = (
        "no label contains the namespace, so metrics of tenants.example.com are served only if they have no namespace"
    )
    assert f"warning[no-namespace-label]: {doubt}" in found.out
    assert "or name the cluster with --kubeconfig" in found.out
    assert "1 rule in" in found.out
    assert "0 errors, 1 warning" in found.out
    beside_pods = check(
        tmp_path,
        """rules:
- seriesQuery: tenant_quota
  resources: {overrides: {pod: {resource: pod}, tenant: {group: example.com, resource: tenants}}}
  metricsQuery: sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})
""",
    )
    assert "metrics of pods are not served" in beside_pods.out
    assert doubt in beside_pods.out


def test_kinds_of_custom_resources_are_accepted_without_a_cluster(tmp_path: Path) -> None:
    custom = GOOD.replace("pod: {resource: pod}", "pod: {resource: brand, group: cheese.io}")

    assert check(tmp_path, custom).code == 0
    assert "unknown-resource" in check(tmp_path, GOOD.replace("resource: pod}", "resource: brand}")).out
