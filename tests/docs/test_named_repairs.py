"""Repairs that messages suggest exist: keys of the chart or of the configuration, flags, and commands."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from adapter.commands.table import COMMANDS as ADAPTER
from adapter.nodes.configuration.reading import SchedulingFileError, read_scheduling
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.configuration.reading import ConfigurationFileError, read_configuration
from tests.helm.chart import CHART
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MESSAGES = (
    "adapter/commands",
    "adapter/foundation/options",
    "adapter/foundation/reports",
    "adapter/metrics/rulebook",
    "adapter/nodes",
    "recommender/commands",
    "recommender/configuration",
    "recommender/kinds/cluster_size",
    "recommender/decisions",
    "recommender/kinds/predictive",
    "recommender/kinds/proportional",
    "recommender/running",
)
TEMPLATES = ("NOTES.txt", "_validate.tpl")
KEY = re.compile(r"(?<![\w./$-])[a-z][A-Za-z]*(?:\.[A-Za-z][A-Za-z0-9]*)+(?![\w(/-])")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-zA-Z-]*(?: flags)?")
COMMAND = re.compile(r"(tidewatch-(?:adapter|recommender)) ([a-z]+)(?=[ `\"]|$)")
OF_OTHERS = {
    "--expander": "cluster-autoscaler",
    "--grpc-expander-url": "cluster-autoscaler",
    "--grpc-expander-cert": "cluster-autoscaler",
    "--set": "helm",
    "--set-file": "helm",
    "--all-namespaces": "kubectl",
    "--field-selector": "kubectl",
    "--check-keys": "redis_exporter",
    "--check-streams": "redis_exporter",
    "--patch": "kubectl",
    "--prefix": "kubectl",
    "--raw": "kubectl",
    "--tail": "kubectl",
    "--type": "kubectl",
    "--metric-labels-allowlist": "kube-state-metrics",
    "--query": "prometheus",
    "--use-service-account-credentials": "kube-controller-manager",
    "--requestheader-client-ca-file": "kube-apiserver",
    "--requestheader-allowed-names": "kube-apiserver",
}
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
FLAGS = {
    f"--{flag.name}"
    for program in (ADAPTER, RECOMMENDER)
    for name in program.commands
    for flag in program.load(name).flags.flags
} | {"--help", "--version"}


def texts_of(path: Path) -> Iterator[str]:
    """Yield the text of each string in a module, without docstrings, with NUL in place of inserted values."""
    tree = ast.parse(path.read_text())
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


@cache
def messages() -> tuple[tuple[str, str], ...]:
    """Return the place and the text of each message."""
    return tuple(_messages())


def _messages() -> Iterator[tuple[str, str]]:
    for folder in MESSAGES:
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            if path.name.endswith("_pb2.py"):
                # Made by protoc, whose names are its own.
                continue
            yield from ((str(path.relative_to(CHECKOUT)), text) for text in texts_of(path))
    for name in TEMPLATES:
        text = (CHART / "templates" / name).read_text()
        yield name, re.sub(r"{{-?(?!-? *fail).*?}}", "\0", text, flags=re.DOTALL)


def found(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return sorted({(match.group(), where) for where, text in messages() for match in pattern.finditer(text)})


def is_in_the_chart(key: str) -> bool:
    node: Any = SCHEMA
    for part in key.split("."):
        if part not in node.get("properties", {}):
            # Below a free mapping, such as resources, any key may be set.
            return "properties" not in node and node.get("additionalProperties", True) is not False
        node = node["properties"][part]
    return True


def is_a_flag(name: str) -> bool:
    """Return whether a command has the flag; `--prometheus-…` and `--prometheus flags` stand for several."""
    if name in FLAGS or name in OF_OTHERS:
        return True
    several = name.removesuffix(" flags")
    return (several != name or name.endswith("-")) and any(flag.startswith(f"{several.rstrip('-')}-") for flag in FLAGS)


def is_in_the_configuration(key: str) -> bool:
    """Return whether a parser of a configuration file knows the key, whatever it says about the value."""
    value = "x"
    for part in reversed(key.split(".")):
        value = f"{{{part}: {value}}}"
    value = value[1:-1]
    head = "apiVersion: tidewatch.io/v1alpha1\nkind: "
    try:
        read_configuration(f"{head}RecommenderConfiguration\nrecommendations: []\n{value}\n", "r.yaml")
    except ConfigurationFileError as error:
        if not any(str(problem.message).startswith("the key ") for problem in error.problems):
            return True
    else:
        return True
    try:
        read_scheduling(f"{head}SchedulingConfiguration\n{value}\n", "s.yaml")
    except SchedulingFileError as error:
        return not any(str(problem.message).startswith("the key ") for problem in error.problems)
    return True


def chart_keys() -> list[tuple[str, str]]:
    """Return texts that look like values of the chart, since their first part is one."""
    names = [each for each in found(KEY) if each[0].partition(".")[0] in SCHEMA["properties"]]
    return [each for each in names if not each[0].endswith((".yaml", ".io", ".json"))]


def test_each_key_that_a_message_names_is_one_of_the_chart_or_of_the_configuration() -> None:
    names = chart_keys()
    assert {"metrics.serviceMonitor.enabled", "prometheus.url", "rules.shipped"} <= {key for key, _ in names}
    assert [each for each in names if not (is_in_the_chart(each[0]) or is_in_the_configuration(each[0]))] == []


def test_each_flag_that_a_message_names_is_one_of_a_command() -> None:
    names = found(FLAG)
    assert {"--prometheus-url", "--cluster"} <= {flag for flag, _ in names}
    assert [each for each in names if not is_a_flag(each[0])] == []


def test_each_command_that_a_message_names_exists() -> None:
    programs = {program.name: program.commands for program in (ADAPTER, RECOMMENDER)}
    names = [(match.group(1), match.group(2), where) for where, text in messages() for match in COMMAND.finditer(text)]
    assert ("tidewatch-adapter", "doctor") in {(program, command) for program, command, _ in names}
    assert [each for each in names if each[1] not in programs[each[0]]] == []


@pytest.mark.parametrize("key", ["recommender.serviceMonitor", "metrics.serviceMonitor.enable", "prometheus.tokenfile"])
def test_an_unknown_key_is_found(key: str) -> None:
    assert not is_in_the_chart(key)
    assert not is_in_the_configuration(key)
