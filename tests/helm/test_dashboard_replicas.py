"""The numbers of panels where several replicas or programs are scraped (promtool)."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from demo.machine.prometheus import program
from tests.helm.grafana import as_sent, panels_of
from tests.rules.alert_series import HEARD, OTHER_POD, POD, RELOADED, VALUES_ANSWERED, requests

if TYPE_CHECKING:
    from pathlib import Path

NODES_POD = POD.replace('job="tidewatch"', 'job="tidewatch-nodes"')
SERVED = f"tidewatch_adapter_demanded_metrics{{{POD}}}"
ONE_IS_SILENT = {HEARD: "0x60", HEARD.replace(POD, OTHER_POD): "0+60x60"}
NODES_CONFIGURATION_IS_REFUSED = {RELOADED: "1x60", SERVED: "0x60", RELOADED.replace(POD, NODES_POD): "0x60"}


@pytest.mark.parametrize(
    ("dashboard", "panel", "series", "expected"),
    [
        ("adapter", "Silent watches", ONE_IS_SILENT, {"{}": 1200}),
        ("adapter", "Silence of watches", ONE_IS_SILENT, {'{resource="pods"}': 1200}),
        ("adapter", "Configuration", NODES_CONFIGURATION_IS_REFUSED, {"{}": 1}),
        ("adapter", "Rule files", NODES_CONFIGURATION_IS_REFUSED, {'{instance="a"}': 1}),
        (
            "adapter",
            "Errors",
            {
                requests("503"): "0+4x60",
                requests("200"): "0+120x60",
                requests("200", "other"): "0+36x60",
                VALUES_ANSWERED: "0x60",
            },
            {"{}": 1},
        ),
        ("nodes", "Nodes by utilisation", {}, {}),
    ],
)
def test_a_panel_has_the_number_that_its_title_promises(
    dashboard: str, panel: str, series: dict[str, str], expected: dict[str, float], tmp_path: Path
) -> None:
    (shown,) = [one for one in panels_of(dashboard) if one["title"] == panel]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": as_sent(dashboard, target["expr"]),
                "eval_time": "20m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in expected.items()],
            }
            for target in shown["targets"]
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"tests": [test]}))
    found = subprocess.run([program("promtool"), "test", "rules", file], capture_output=True, text=True, check=False)
    assert found.returncode == 0, re.sub(r" +", " ", found.stdout + found.stderr)
