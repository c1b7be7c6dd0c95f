"""The shipped recording rules record what `tidewatch-adapter nodes` computes (promtool)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.nodes.model.loads import LoadResource
from adapter.nodes.queries.expressions import ACCOUNTED_RULE, RULES, rate_function, value_parts
from demo.machine.prometheus import program
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

RECORDING = CHECKOUT / "rules" / "recording"
FILE = RECORDING / "nodes.yaml"
NODE = 'instance="10.0.0.1:9100"'
COPIES = 'instance="10.9.9.9:8080",namespace="evil"'


@dataclass(frozen=True, slots=True)
class Case:
    """Series in promtool's notation (a sample every 15 s), and the recorded values after five minutes."""

    record: str
    series: dict[str, str]
    expected: dict[str, float]


def cpu_series(idle: float, busy: float, labels: str = NODE) -> dict[str, str]:
    """Return counters of two CPUs that were idle and busy for these shares of the time."""
    shares = {"idle": idle * 0.9, "iowait": idle * 0.1, "user": busy * 0.8, "system": busy * 0.2}
    return {
        f'node_cpu_seconds_total{{{labels},cpu="{cpu}",mode="{mode}"}}': f"0+{15 * share:.4f}x40"
        for cpu in range(2)
        for mode, share in shares.items()
    }


def network(speed: float, labels: str = NODE) -> dict[str, str]:
    return {
        f'node_network_receive_bytes_total{{{labels},device="eth0"}}': "0+1500x40",
        f'node_network_transmit_bytes_total{{{labels},device="eth0"}}': "0+7500x40",
        f'node_network_receive_bytes_total{{{labels},device="veth1"}}': "0+150000x40",
        f'node_network_speed_bytes{{{labels},device="eth0"}}': f"{speed}x40",
        f'node_network_speed_bytes{{{labels},device="veth1"}}': f"{speed}x40",
    }


INSTANCE = '{instance="10.0.0.1:9100"}'
CPU, MEMORY, NETWORK, DISK, GPU = (RULES[resource] for resource in LoadResource)
CASES = (
    Case(CPU, cpu_series(0.75, 0.25), {INSTANCE: 0.25}),
    Case(ACCOUNTED_RULE, cpu_series(0.75, 0.25), {INSTANCE: 1.0}),
    # A pair of servers, or an exporter that was restarted, is one node.
    Case(CPU, cpu_series(0.75, 0.25, f'{NODE},pod="a"') | cpu_series(0.75, 0.25, f'{NODE},pod="b"'), {INSTANCE: 0.25}),
    # Counters that stand still are no load of 100%.
    Case(CPU, cpu_series(0.0, 0.0), {}),
    Case(ACCOUNTED_RULE, cpu_series(0.0, 0.0), {INSTANCE: 0.0}),
    Case(CPU, {f'node_cpu_seconds_total{{{NODE},cpu="0",mode="idle"}}': "0+9x40"}, {}),
    Case(
        MEMORY,
        {f"node_memory_MemAvailable_bytes{{{NODE}}}": "300x40", f"node_memory_MemTotal_bytes{{{NODE}}}": "1000x40"},
        {INSTANCE: 0.7},
    ),
    Case(MEMORY, {f"node_memory_MemAvailable_bytes{{{NODE}}}": "300x40"}, {}),
    Case(NETWORK, network(1000), {INSTANCE: 0.5}),
    Case(NETWORK, network(-125000), {}),
    # Anybody may export our own label: two series that differ by it alone must not become one, which fails the rule.
    Case(
        NETWORK,
        network(1000) | network(1000, f'{COPIES},tidewatch_part="a"') | network(1000, f'{COPIES},tidewatch_part="b"'),
        {INSTANCE: 0.5, f"{{{COPIES}}}": 0.5},
    ),
    Case(
        DISK,
        {
            f'node_disk_io_time_seconds_total{{{NODE},device="sda"}}': "0+3x40",
            f'node_disk_io_time_seconds_total{{{NODE},device="nvme0n1"}}': "0+6x40",
            f'node_disk_io_time_seconds_total{{{NODE},device="dm-0"}}': "0+15x40",
        },
        {INSTANCE: 0.4},
    ),
    Case(
        GPU,
        {
            'DCGM_FI_DEV_GPU_UTIL{instance="10.1.1.1:9400",Hostname="n1",gpu="0"}': "80x40",
            'DCGM_FI_DEV_GPU_UTIL{instance="10.1.1.1:9400",Hostname="n1",gpu="1"}': "20x40",
        },
        {'{Hostname="n1",instance="10.1.1.1:9400"}': 0.5},
    ),
)


def promtool_test(case: Case) -> dict[str, Any]:
    samples = [{"labels": case.record + labels, "value": value} for labels, value in case.expected.items()]
    return {
        "interval": "15s",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [
            {"expr": f"round({case.record}, 0.0001)", "eval_time": "5m", "exp_samples": without_name(samples)}
        ],
    }


def without_name(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**sample, "labels": sample["labels"][sample["labels"].index("{") :]} for sample in samples]


def test_the_rules_record_the_load_of_nodes(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    tests = [promtool_test(case) for case in CASES]
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "15s", "tests": tests}))
    found = subprocess.run(
        [program("promtool"), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def recorded() -> dict[str, str]:
    return {
        rule["record"]: " ".join(rule["expr"].split())
        for group in yaml.safe_load(FILE.read_text())["groups"]
        for rule in group["rules"]
    }


def test_there_is_a_rule_for_each_resource_and_a_test_for_each_rule() -> None:
    assert set(recorded()) == {*RULES.values(), ACCOUNTED_RULE} == {case.record for case in CASES}


@pytest.mark.parametrize("resource", LoadResource)
def test_a_rule_has_the_parts_of_the_built_in_expression(resource: LoadResource) -> None:
    for part in value_parts(resource, rate_function(float("nan")), ()).values():
        expression = " ".join(part.replace("[300s]", "[5m]").split())
        assert any(expression in text for text in recorded().values())


def test_prometheus_reads_the_file() -> None:
    subprocess.run([program("promtool"), "check", "rules", str(FILE)], check=True, capture_output=True)
