"""Rules that `check` reads from manifests of ConfigMaps and from values of charts, with the lines of these files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.checked_rules import GOOD, MENDABLE, check
from tests.support.forked import run

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata: {name: adapter-config, namespace: monitoring}
data:
  config.yaml: |-
"""


def manifest_of(rules: str) -> str:
    return MANIFEST + "".join(f"    {line}" if line.strip() else line for line in rules.splitlines(keepends=True))


def test_a_manifest_of_a_configmap_is_read_and_findings_have_its_lines(tmp_path: Path) -> None:
    wrong = GOOD.replace("pod: {resource: pod}", "pod: {resource: pdo}")
    assert check(tmp_path, manifest_of(GOOD)).out.endswith(
        "1 rule in " + f"{tmp_path}/rules.yaml: 0 errors, 0 warnings\n"
    )
    ended = check(tmp_path, manifest_of(wrong))

    assert ended.code == 1
    place, line, caret, *_ = ended.out.splitlines()
    assert place.startswith(f"{tmp_path}/rules.yaml:8:")
    assert ": error[unknown-resource]: no resource 'pdo'" in place
    assert line[caret.index("^") :].startswith("pdo}")


def test_a_manifest_of_a_configmap_is_fixed_in_place(tmp_path: Path) -> None:
    ended = check(tmp_path, manifest_of(MENDABLE), "--fix")

    assert ended.code == 0
    mended = MENDABLE.replace("metricQuery", "metricsQuery").replace("$1_per_second", "'${1}_per_second'")
    assert (tmp_path / "rules.yaml").read_text() == manifest_of(mended)


def test_a_key_in_a_manifest_is_not_fixed_to_one_that_is_there(tmp_path: Path) -> None:
    text = manifest_of(GOOD + "  metricQuery: up\n")
    ended = check(tmp_path, text, "--fix")

    assert ended.out.startswith("fixed 0 findings\n")
    assert "error[unknown-key]: the key 'metricQuery' is not known" in ended.out
    assert (tmp_path / "rules.yaml").read_text() == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(manifest_of("rules: [\n"), "rules.yaml:7: this is not YAML: ", id="broken inside"),
        pytest.param("kind: ConfigMap\ndata:\n  a.yaml: 'rules: ['\n", "rules.yaml:a.yaml:2: ", id="broken in quotes"),
        pytest.param("kind: ConfigMap\ndata: {a.txt: x}\n", "this ConfigMap holds no *.yaml key", id="no rules"),
        pytest.param("kind: ConfigMap\ndata: {a.yaml: [x]}\n", "expected a string, found a list", id="no text"),
        pytest.param("kind: ConfigMap\ndata: [x]\n", "expected a mapping", id="no mapping"),
        pytest.param("kind: ConfigMap\n", "this ConfigMap holds no *.yaml key", id="no data"),
        pytest.param("kind: ConfigMap\ndata: {a.yaml: '[x]'}\n", "holds a list and nothing else", id="no keys"),
        pytest.param(
            manifest_of("rules:\n  custom: []\n"),
            "rules.yaml:6: these are values of a chart, not a rule file: ",
            id="values of a chart",
        ),
    ],
)
def test_a_manifest_without_valid_rules_is_exit_2_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    ended = check(tmp_path, text)

    assert (ended.code, ended.out) == (2, "")
    assert ended.error.startswith(f"tidewatch-adapter: {tmp_path}/rules.yaml:")
    assert words in ended.error


def test_serve_refuses_a_manifest_as_a_rule_file_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(manifest_of(GOOD))
    ended = run("serve", f"--config={file}", "--prometheus-url=http://127.0.0.1:9")

    assert ended.code == 2
    assert f"{file}:1: this is a ConfigMap, not the rule file in it: apply it to the cluster" in ended.error


def values_of(rules: str, *, chart: str = "") -> str:
    """Return values of prometheus-adapter's chart with these custom rules, or values of a chart that contains it."""
    custom = "".join(f"  {line}" for line in rules.splitlines(keepends=True)).replace("  rules:", "rules:\n  custom:")
    values = f"prometheus: {{url: http://prometheus, port: 9090}}\n{custom}"
    return values if not chart else f"replicas: 1\n{chart}:\n" + "".join(f"  {line}\n" for line in values.splitlines())


@pytest.mark.parametrize(
    ("chart", "line"), [("", 5), ("prometheus-adapter", 7)], ids=["its values", "the values of a chart around it"]
)
def test_the_rules_in_values_of_a_chart_are_read_and_findings_have_their_lines(
    tmp_path: Path, chart: str, line: int
) -> None:
    good = check(tmp_path, values_of(GOOD, chart=chart))
    wrong = check(tmp_path, values_of(GOOD.replace("resource: pod}", "resource: pdo}"), chart=chart))

    assert (good.code, good.out) == (0, f"1 rule in {tmp_path}/rules.yaml: 0 errors, 0 warnings\n")
    assert wrong.code == 1
    assert wrong.out.startswith(f"{tmp_path}/rules.yaml:{line}:")
    assert ": error[unknown-resource]: no resource 'pdo'" in wrong.out


def test_external_rules_and_resource_rules_of_values_are_checked(tmp_path: Path) -> None:
    ended = check(
        tmp_path,
        "rules:\n  default: false\n  external:\n  - {seriesQuery: up}\n  resource: {cpu: {containerQuery: up}}\n",
    )

    assert ended.code == 1
    assert "rules.yaml:4:" in ended.out
    assert "rules.yaml:5:" in ended.out


def test_the_rules_of_several_charts_in_values_are_all_checked(tmp_path: Path) -> None:
    other = values_of(GOOD.replace("open_connections", "queue_depth"), chart="other").removeprefix("replicas: 1\n")
    ended = check(tmp_path, values_of(GOOD, chart="adapter") + other)

    assert (ended.code, ended.out) == (0, f"2 rules in {tmp_path}/rules.yaml: 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        pytest.param("{default: true}", "1: the values contain no rule: ", id="no rules"),
        pytest.param("{custom: [], external: ~, resource: {}}", "1: the values contain no rule: ", id="empty rules"),
        pytest.param("{custom: [], extrenal: []}", "1: the key 'extrenal' is not known: did you mean", id="misspelt"),
        pytest.param("{existing: mine, custom: [x]}", "takes its rules from the ConfigMap 'mine'", id="a ConfigMap"),
    ],
)
def test_chart_values_without_rules_are_exit_2_with_the_reason(tmp_path: Path, rules: str, words: str) -> None:
    ended = check(tmp_path, f"rules: {rules}\n")

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.error


def test_chart_values_are_fixed_in_place(tmp_path: Path) -> None:
    ended = check(tmp_path, values_of(GOOD.replace("metricsQuery", "metricQuery")), "--fix")

    assert ended.code == 0
    assert (tmp_path / "rules.yaml").read_text() == values_of(GOOD)


def test_serve_refuses_chart_values_as_a_rule_file_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(values_of(GOOD))
    ended = run("serve", f"--config={file}", "--prometheus-url=http://127.0.0.1:9")

    assert ended.code == 2
    assert f"{file}:1: these are values of a chart, not a rule file: install the chart" in ended.error
