"""The shipped configuration of schedulers and deschedulers avoids problems of users of load-aware scheduling."""

from __future__ import annotations

import math
import re
from typing import Any

import yaml

from tests.support.checkout import CHECKOUT

FILES = CHECKOUT / "helm" / "tidewatch" / "files"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FILES / name).read_text())
    return found


def arguments_of(policy: str) -> dict[str, Any]:
    """Return the arguments of a policy of the shipped configuration."""
    (found,) = [each for each in read("scheduler/scheduling.yaml")["policies"] if each["name"] == policy]
    arguments: dict[str, Any] = found["args"]
    return arguments


def test_the_shipped_scheduler_disables_plugins_that_counteract_the_scores__scheduler_plugins_618() -> None:
    (profile,) = read("scheduler/default-scheduler.yaml")["profiles"]
    disabled = {plugin["name"] for plugin in profile["plugins"]["score"]["disabled"]}
    assert disabled == {"NodeResourcesBalancedAllocation", "NodeResourcesFit"}
    # Its filter stays: no pod comes to a node that lacks what it requests.
    assert set(profile["plugins"]) == {"score"}


def test_the_shipped_scheduler_sends_only_node_names__kubernetes_141781() -> None:
    (extender,) = read("scheduler/default-scheduler.yaml")["extenders"]
    assert extender["nodeCacheCapable"] is True
    assert extender["ignorable"] is True


def test_the_shipped_configuration_undoes_no_smoothing__scheduler_plugins_357() -> None:
    assert arguments_of("low-risk-overcommitment")["smoothingWindowSize"] == 1


def score(used_percent: float, target_percent: float) -> int:
    """Return TargetLoadPacking's score of a node (scheduler-plugins, KEP 61)."""
    if used_percent <= target_percent:
        return math.floor((100 - target_percent) * used_percent / target_percent + target_percent + 0.5)
    return math.floor(target_percent * (100 - used_percent) / (100 - target_percent) + 0.5)


def test_the_shipped_policy_evicts_only_where_the_scheduler_would_not_refill__descheduler_994() -> None:
    (profile,) = read("descheduler/policy.yaml")["profiles"]
    (arguments,) = [each["args"] for each in profile["pluginConfig"] if each["name"] == "LowNodeUtilization"]
    cool, hot = arguments["thresholds"]["MetricResource"], arguments["targetThresholds"]["MetricResource"]
    target = arguments_of("target-load-packing")["targetUtilization"]
    worst_of_cool = min(score(percent, target) for percent in range(cool + 1))
    assert score(hot, target) < worst_of_cool / 2
    query = arguments["metricsUtilization"]["prometheus"]["query"]
    # The window of scores: what is hot for the one is hot for the other.
    assert dict(re.findall(r'(\w+)="(\w+)"', query)) == {"resource": "cpu", "window": "15m", "stat": "avg"}
    # Evicting starts where /hotspots does.
    assert f"{hot}%" == read("scheduler/scheduling.yaml")["hotspots"]["cpu"]
