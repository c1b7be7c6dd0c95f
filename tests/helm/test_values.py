"""Values, schema and files of the chart agree; end-to-end tests check what Helm renders from them."""

from __future__ import annotations

import json
import re
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.prometheus.backends import backend_settings
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.nodes.configuration.reading import read_scheduling
from adapter.nodes.hotspots.descheduler_query import UtilizationSelector, parse_query
from adapter.nodes.model.loads import AVG, LoadResource
from adapter.nodes.model.scheduling_settings import (
    DEFAULT_ARGS,
    LowRiskOverCommitmentArgs,
    PolicyName,
    SchedulingSettings,
)
from recommender.configuration.reading import read_configuration
from tests.helm.cases import RULE, resource_rules
from tests.helm.chart import CHART, default_values
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
OPEN = {"global", "definitions.kubernetes", "definitions.objects[]"}
"""Objects that the schema leaves open: Helm's own and Kubernetes' own."""


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    return SCHEMA["definitions"][reference.rpartition("/")[2]] if reference else schema


def leaves(value: object, schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, bool, bool]]:
    """Yield each path, whether values.yaml has it, and whether the schema has it."""
    known = resolved(schema).get("properties")
    if known is None:
        yield path, value is not ..., True
        return
    values = value if isinstance(value, dict) else {}
    for key in sorted({*values, *known}):
        below = f"{path}.{key}".strip(".")
        if key in known:
            yield from leaves(values.get(key, ...), known[key], below)
        else:
            yield below, True, False


def test_every_value_is_in_the_schema_and_every_property_of_the_schema_is_a_value() -> None:
    # What an issuer is referred to by, what Helm hands in, a limit of the scheduler, and what is within a rule has no
    # default.
    optional = {"global", "enabled", "nodes.scheduler.resources.limits"}
    optional |= {*(f"certificates.certManager.issuerRef.{key}" for key in ("group", "kind", "name"))}
    found = [one for one in leaves(default_values(), SCHEMA) if not one[0].startswith("rules.resource.")]
    assert len(found) > 60
    assert [path for path, in_values, in_schema in found if not (in_values and in_schema)] == sorted(optional)


def objects(schema: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema of a mapping, and its path."""
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        yield path, schema
    for key in ("properties", "definitions"):
        start = f"{path}." if path else ""
        for name, inner in schema.get(key, {}).items():
            yield from objects(inner, f"{'definitions.' if key == 'definitions' else start}{name}")
    yield from objects(schema.get("items"), f"{path}[]")
    yield from objects(schema.get("additionalProperties"), f"{path}.*")


def test_a_value_that_does_not_exist_is_an_error_everywhere() -> None:
    found = dict(objects(SCHEMA))
    assert {path for path, schema in found.items() if "additionalProperties" not in schema} == OPEN
    assert not [path for path, schema in found.items() if "properties" in schema and schema["additionalProperties"]]


NULL_IS_MEANT = {
    "certificates.certManager.duration",
    "certificates.certManager.renewBefore",
    "image.pullPolicy",
    "metrics.podMonitor.interval",
    "metrics.serviceMonitor.interval",
    "nodes.priorityClassName",
    "nodes.replicas",
    "nodes.scheduler.priorityClassName",
    "nodes.scheduler.replicas",
    "nodes.stateSizeLimit",
    "priorityClassName",
    "prometheus.port",
    "recommender.priorityClassName",
    "recommender.replicas",
    "recommender.stateSizeLimit",
    "replicas",
    "runAsUser",
}
"""Values without which the chart leaves something to Kubernetes, cert-manager, the Prometheus operator or the URL."""


def missable(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the path of each group, and of each value other than false, an empty text and a list, that may be null."""
    for key, value in values.items():
        below = f"{path}.{key}".strip(".")
        known = resolved(schema["properties"][key])
        is_group = isinstance(value, dict) and bool(value) and "properties" in known
        if key == "resources" or not (is_group or isinstance(value, bool | int | str)):
            # What is Kubernetes' own or free in form; without it, there is none.
            continue
        if value not in (False, "") and key not in schema.get("required", ()):
            yield below
        if is_group:
            yield from missable(value, known, below)


def test_required_values_cannot_be_removed_with_null() -> None:
    """Helm removes a default that is overridden with null, and lacks new ones with `--reuse-values`."""
    assert set(missable(default_values(), SCHEMA)) == NULL_IS_MEANT
    # The notes and the rules that ship are about it.
    assert "enabled" in SCHEMA["properties"]["recommender"]["required"]


def test_every_value_has_one_line_that_explains_it() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    keys = [index for index, line in enumerate(lines) if re.match(r" *[A-Za-z0-9]+:", line)]
    # What is explained by its parent: examples of Kubernetes' own objects.
    inside = re.compile(r"^ +(requests|limits|cpu|memory):")
    groups = [index for index in keys if lines[index].endswith(":")]
    unexplained = [
        lines[index]
        for index in keys
        if index not in groups and not lines[index - 1].strip().startswith("#") and not inside.match(lines[index])
    ]
    assert unexplained == []


@pytest.mark.parametrize("path", sorted((CHART / "files").glob("*.yaml")), ids=lambda path: path.name)
def test_the_adapter_accepts_every_rule_of_the_chart(path: Path) -> None:
    book = parse_rulebook([load_documents(path.read_text(), path.name)], partial(find_resource, BUILT_IN))
    assert book.findings == ()
    assert len(book.rules) == 6


SOURCES = {
    "rules": CHECKOUT / "rules" / "adapter",
    "alerts": CHECKOUT / "rules" / "alerts",
    "recording": CHECKOUT / "rules" / "recording",
}


@pytest.mark.parametrize("folder", SOURCES)
def test_the_files_of_the_chart_are_those_of_the_repository(folder: str) -> None:
    shipped = {path.name: path.read_text() for path in (CHART / "files" / folder).iterdir()}
    assert shipped == {path.name: path.read_text() for path in SOURCES[folder].glob("*.yaml")}


def test_every_rule_file_that_ships_can_be_chosen() -> None:
    _, listed = SCHEMA["properties"]["rules"]["properties"]["shipped"]["oneOf"]
    names = listed["items"]["enum"]
    assert sorted(names) == sorted(path.stem for path in SOURCES["rules"].glob("*.yaml"))


BACKEND = {
    "name": "eu",
    "url": "https://eu:9090",
    "tokenFile": "/eu/token",
    "caFile": "/eu/ca.crt",
    "headers": {"X-Scope-OrgID": "eu"},
    "timeout": "10s",
    "matchers": 'cluster="eu"',
    "partialResponse": False,
}
OF_OTHER_CREDENTIALS = {"certFile", "keyFile", "basicAuth"}
EVERY_KEY = RULE | {
    "backend": "eu",
    "seriesFilters": [{"is": "^queue_"}],
    "name": {"as": "queued"},
    "onNoData": 0,
    "maxSampleAge": "1m",
    "holdSilent": "10m",
    "foreignNamespaces": "allow",
    "refresh": "10s",
    "window": "5m",
}


def test_the_adapter_accepts_every_key_of_a_rule_in_the_schema() -> None:
    resource = resource_rules()
    resource["cpu"]["backend"] = "eu"
    custom = {key: value for key, value in EVERY_KEY.items() if key != "holdSilent"}
    top = {"prometheus": [BACKEND], "rules": [custom], "externalRules": [EVERY_KEY], "resourceRules": resource}
    rules = yaml.safe_dump(top)
    book = parse_rulebook([load_documents(rules, "values")], partial(find_resource, BUILT_IN))
    assert (len(book.rules), len(book.resource.rules), book.findings) == (2, 2, ())
    given = {"rule": EVERY_KEY, "resourceRules": resource, "resourceRule": resource["cpu"]}
    assert {name: set(SCHEMA["definitions"][name]["properties"]) for name in given} == {
        name: set(keys) for name, keys in given.items()
    }
    keys = {each.key for each in backend_settings.BACKEND.keys}
    assert set(SCHEMA["definitions"]["backend"]["properties"]) == keys == {*BACKEND, *OF_OTHER_CREDENTIALS}


def test_the_rules_of_the_readme_are_accepted() -> None:
    examples = re.findall(r"```yaml\n(rules:.*?)```", (CHART / "README.md").read_text(), flags=re.DOTALL)
    given = [yaml.safe_load(example)["rules"] for example in examples]
    assert [sorted(rules) for rules in given] == [["custom"], ["resource"]]
    rules = yaml.safe_dump({"rules": given[0]["custom"], "resourceRules": given[1]["resource"]})
    book = parse_rulebook([load_documents(rules, "README.md")], partial(find_resource, BUILT_IN))
    assert book.findings == ()
    assert {rule.resource for rule in book.resource.rules} == {"cpu", "memory"}
    assert len(book.rules) == 1


def test_the_recommenders_of_the_readme_are_accepted() -> None:
    examples = re.findall(r"```yaml\n(recommender:.*?)```", (CHART / "README.md").read_text(), flags=re.DOTALL)
    given = [yaml.safe_load(example) for example in examples]
    read = [read_configuration(yaml.safe_dump(values["recommender"]["config"]), "README.md") for values in given]
    types = [[each.policy.type for each in one.recommendations] for one in read]
    assert types == [["proportional"], ["clusterSize"]]
    assert [one.refused for one in read] == [(), ()]


def test_the_scheduling_configuration_of_the_chart_is_accepted() -> None:
    file = CHART / "files" / "scheduler" / "scheduling.yaml"
    settings = read_scheduling(file.read_text(), file.name)
    arguments = {policy.name: policy.args for policy in settings.policies}
    assert [policy.weight for policy in settings.policies] == [2, 1, 1]
    assert arguments[PolicyName.LOW_RISK_OVERCOMMITMENT] == LowRiskOverCommitmentArgs(smoothing_window_size=1)
    assert arguments[PolicyName.TARGET_LOAD_PACKING] == DEFAULT_ARGS[PolicyName.TARGET_LOAD_PACKING]
    assert settings.filter.limits == {LoadResource.CPU: 0.95, LoadResource.MEMORY: 0.95}
    assert settings.hotspots == SchedulingSettings().hotspots


@pytest.mark.parametrize(("file", "resource"), [("policy.yaml", LoadResource.CPU), ("policy-any.yaml", None)])
def test_the_query_of_the_descheduler_s_policy_is_answered(file: str, resource: LoadResource | None) -> None:
    (profile,) = yaml.safe_load((CHART / "files" / "descheduler" / file).read_text())["profiles"]
    (arguments,) = [each["args"] for each in profile["pluginConfig"] if each["name"] == "LowNodeUtilization"]
    # The window of scores, so that what is hot for the one is hot for the other.
    query = parse_query(arguments["metricsUtilization"]["prometheus"]["query"])
    assert query == UtilizationSelector(resource, window=0, stat=AVG)


def test_the_readme_names_values_that_exist() -> None:
    text = (CHART / "README.md").read_text()
    kept = re.search(r"Values keep their names.*?\n\n", text, flags=re.DOTALL)
    assert kept
    known = {path for path, *_ in leaves(default_values(), SCHEMA)}
    groups = {path.rpartition(".")[0] for path in known}
    known |= groups | {f"{path}.*" for path in groups}
    prefix, missing = "", []
    for name in re.findall(r"`([^`]+)`", kept[0]):
        prefix = name.rpartition(".")[0] or (prefix if name.startswith(".") else "")
        full = prefix + name if name.startswith(".") else name
        missing += [full] if full not in known else []
    assert missing == []


def test_the_chart_is_of_the_project_s_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_helm_is_pinned_with_its_sum() -> None:
    module = CHECKOUT / "tests" / "helm" / "go"
    version = re.search(r"^\thelm\.sh/helm/v3 (v\S+)", (module / "go.mod").read_text(), flags=re.MULTILINE)
    assert version
    assert f"helm.sh/helm/v3 {version[1]} h1:" in (module / "go.sum").read_text()
