"""The shipped alerts fire when they should and only then (promtool)."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from demo.machine.prometheus import program
from tests.rules import adapter_alert_cases, nodes_alert_cases, recommender_alert_cases, shared_alert_cases
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.rules.alert_case import Case

ALERTS = CHECKOUT / "rules" / "alerts"
RUNBOOKS = CHECKOUT / "docs" / "runbooks.md"
CASES = (
    *adapter_alert_cases.CASES,
    *nodes_alert_cases.CASES,
    *recommender_alert_cases.CASES,
    *shared_alert_cases.CASES,
)


def rules() -> dict[str, dict[str, Any]]:
    return {
        rule["alert"]: rule
        for file in ALERTS.glob("*.yaml")
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    }


@pytest.mark.parametrize("alert", sorted(rules()))
def test_an_alert_fires_when_it_should_and_only_then(alert: str, tmp_path: Path) -> None:
    rule = rules()[alert]
    alone = tmp_path / "rules.yaml"
    without_texts = {key: value for key, value in rule.items() if key != "annotations"}
    alone.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [without_texts]}]}))
    cases = [case for case in CASES if case.alert == alert]
    tests = [promtool_test(case, rule["labels"]) for case in cases]
    file = tmp_path / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(alone)], "evaluation_interval": f"{cases[0].step_minutes}m", "tests": tests})
    )
    found = subprocess.run(
        [program("promtool"), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def promtool_test(case: Case, labels: dict[str, str]) -> dict[str, Any]:
    expected = {"namespace": "monitoring", "job": "tidewatch"} | case.labels | labels
    return {
        "interval": f"{case.step_minutes}m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [
            {
                "eval_time": f"{case.minute}m",
                "alertname": case.alert,
                "exp_alerts": [{"exp_labels": expected}] if case.fires else [],
            }
        ],
    }


def test_every_alert_is_tested_for_firing_and_for_silence() -> None:
    tested = {(case.alert, case.fires) for case in CASES}
    assert {(alert, fires) for alert in rules() for fires in (True, False)} - tested == set()


def test_every_alert_has_its_runbook() -> None:
    headings = re.findall(r"^## `(\w+)`$", RUNBOOKS.read_text(), re.MULTILINE)
    for alert, rule in rules().items():
        assert alert in headings
        assert rule["annotations"]["runbook_url"].endswith(f"docs/runbooks.md#{alert.lower()}")


def test_every_runbook_has_its_alert() -> None:
    assert set(re.findall(r"^## `(Tidewatch\w+)`$", RUNBOOKS.read_text(), re.MULTILINE)) == set(rules())


@pytest.mark.parametrize("file", sorted(ALERTS.glob("*.yaml")), ids=lambda file: file.name)
def test_prometheus_reads_every_file_of_alerts(file: Path) -> None:
    subprocess.run([program("promtool"), "check", "rules", str(file)], check=True, capture_output=True)
