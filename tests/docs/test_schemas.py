"""The JSON Schemas of configuration files are current, and accept what the readers accept."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.tree import DocumentError
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.options.schema import schema_text
from adapter.metrics.rulebook.findings import Code, Severity
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.parsing.rule_file import RULE_FILE
from adapter.nodes.configuration.reading import SCHEDULING, read_scheduling
from recommender.configuration.reading import CONFIGURATION, read_configuration
from recommender.shapes.catalogue import CATALOGUE, read_catalogue
from tests.adapter.nodes.configuration import test_reading as nodes
from tests.docs.block_classes import is_recommender, recommender_text
from tests.docs.blocks import PAGES, blocks_of
from tests.recommender.configuration import test_reading as recommender
from tests.recommender.configuration.files import TARGET, entry, whole
from tests.recommender.kinds.cluster_size.reading import test_settings as cluster_size
from tests.recommender.kinds.predictive.reading import test_predictive_reading as predictive
from tests.recommender.kinds.proportional import test_reading as proportional
from tests.support.checkout import CHECKOUT
from tests.support.forked import ADAPTER, RECOMMENDER, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.foundation.documents.sections import Section

RULES: Final = "rules"
SHAPES: Final = "shapes"
SCHEMAS: Final[dict[str, tuple[Path, str, Section[Any]]]] = {
    RECOMMENDER: (CHECKOUT / "docs/schemas/recommender-configuration.json", "recommender configuration", CONFIGURATION),
    ADAPTER: (CHECKOUT / "docs/schemas/scheduling-configuration.json", "scheduling configuration", SCHEDULING),
    RULES: (CHECKOUT / "docs/schemas/rule-file.json", "rule file", RULE_FILE),
    SHAPES: (CHECKOUT / "docs/schemas/machine-shape-catalogue.json", "catalogue of machine shapes", CATALOGUE),
}
"""The schema's file, kind and reader, by the program that prints it; a second schema has its own name."""
COMMANDS: Final = {
    RECOMMENDER: (RECOMMENDER, ("schema",)),
    ADAPTER: (ADAPTER, ("schema",)),
    RULES: (ADAPTER, ("schema", "--of", "rules")),
    SHAPES: (RECOMMENDER, ("schema", "--of", "shapes")),
}
VALIDATORS: Final = {
    program: Draft202012Validator(json.loads(schema_text(title, section)))
    for program, (_, title, section) in SCHEMAS.items()
}


def plain(text: str) -> Any:  # noqa: ANN401 - a document
    """Return a YAML document in the types of JSON; times, which YAML 1.2 does not know, are texts again."""
    return json.loads(json.dumps(yaml.safe_load(text), default=lambda time: f"{time:%Y-%m-%dT%H:%M:%SZ}"))


def document_of(*kinds: tuple[str, str]) -> Any:  # noqa: ANN401 - likewise
    """Return a configuration with an entry for each pair of a kind and the YAML of its settings."""
    entries = [{"name": f"e{number}", kind: plain(text)} for number, (kind, text) in enumerate(kinds)]
    return {**plain(whole(top=recommender.EVERYTHING)), "recommendations": entries}


RUN: Final = (
    "{load: x, loadPerReplica: 1k, horizon: 1m, scaleDown: {}, override: {replicas: 1, until: 2030-01-01T00:00:00Z}}"
)
BRAKED: Final = entry(
    "a", f"targets: [{TARGET}]", "outputs: [scale]", "maxStep: 10%", "maxChangesPerHour: 2", "paused: up"
)
FORECASTS: Final = cluster_size.EVERYTHING_WRITTEN.replace("forecasts: [chat]", "forecasts: [e1]")
RULE_KEYS: Final = """
rules:
- seriesQuery: 'requests_total{namespace!="",pod!=""}'
  seriesFilters: [{is: ^requests}, {isNot: _bucket$}]
  resources:
    template: <<.Resource>>
    overrides: {namespace: {resource: namespace}, app: {group: apps, resource: deployment}}
  name: {matches: ^(.*)_total$, as: "${1}_rate"}
  metricsQuery: sum by (<<.GroupBy>>) (rate(<<.Series>>{<<.LabelMatchers>>}[2m]))
  onNoData: 500m
  maxSampleAge: 1m
  refresh: 30s
  window: 2m
  foreignNamespaces: allow
externalRules:
- seriesQuery: '{__name__=~"queue_.*",namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}, namespaced: true}
  metricsQuery: max by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})
  onNoData: {value: 3}
  maxSampleAge: 1m
  holdSilent: 0
resourceRules:
  cpu:
    containerQuery: sum by (<<.GroupBy>>) (rate(cpu_seconds_total{<<.LabelMatchers>>}[2m]))
    nodeQuery: sum by (<<.GroupBy>>) (rate(node_cpu_seconds_total{<<.LabelMatchers>>}[2m]))
    resources: {overrides: {namespace: {resource: namespace}, node: {resource: node}, pod: {resource: pod}}}
    containerLabel: container
  memory:
    nodeQuery: sum by (<<.GroupBy>>) (node_memory_used_bytes{<<.LabelMatchers>>})
    containerQuery: sum by (<<.GroupBy>>) (memory_used_bytes{<<.LabelMatchers>>})
    resources: {overrides: {namespace: {resource: namespace}, node: {resource: node}, pod: {resource: pod}}}
    containerLabel: container
  window: 1m
"""
DOCUMENTS: Final = {
    "proportional": (RECOMMENDER, document_of(*(("proportional", text) for text, _ in proportional.GOOD.values()))),
    "predictive": (RECOMMENDER, document_of(("predictive", predictive.GOOD["every key"][0]))),
    "clusterSize": (
        RECOMMENDER,
        document_of(
            ("clusterSize", "nodeGroups: [{name: a, max: 3, selector: pool=a}]"),
            ("predictive", RUN),
            ("clusterSize", FORECASTS),
        ),
    ),
    "brakes": (RECOMMENDER, plain(whole(BRAKED))),
    "nodes": (ADAPTER, plain(nodes.HEAD + nodes.EVERYTHING)),
    "rules": (RULES, plain(RULE_KEYS)),
    "shapes": (SHAPES, plain((CHECKOUT / "docs/examples/machine-shapes/catalogue.yaml").read_text())),
}
TEXTS: Final = (
    *("", "a", "x y", "true", "up", "0", "-0s", "1.5h", "1d", "90", "7", "1e3", "0x1", "5%", "0%", "101%", "2000%"),
    *("500m", "1Gi", "-1", "1Qi", ":80", "h:1", "UTC", "* * * * *", "pool=a", "a in (b", "cpu", "a=b:NoSchedule"),
    *("scale", "Deployment", "random", "2030-01-01T00:00:00Z", "apps/v1", "nvidia.com/gpu", "A", "spot-.*", "("),
)
VALUES: Final[tuple[object, ...]] = (
    *TEXTS,
    None,
    True,
    False,
    0,
    1,
    3,
    -1,
    70,
    0.5,
    0.97,
    1.5,
    1e15,
    10**30,
    [],
    {},
    [1, 2],
    ["a"],
    {"a": "b"},
)


def values_of(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], object]]:
    """Yield all values of a document with their paths."""
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from values_of(inner, (*path, key))


def places(document: object) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values, and in each mapping the path of an unknown key."""
    for path, value in values_of(document):
        yield from [path] if path else []
        yield from [(*path, "unknown")] if isinstance(value, dict) else []


PLACES: Final = [(name, path) for name, (_, document) in DOCUMENTS.items() for path in places(document)]


def with_value(document: object, path: tuple[Any, ...], value: object) -> object:
    changed = copy.deepcopy(document)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def rule_errors(document: object) -> set[str]:
    """Return the codes of the errors in a rule file."""
    findings = parse_rulebook(
        [load_documents(json.dumps(document), "rules.yaml")], partial(find_resource, BUILT_IN)
    ).findings
    return {finding.code for finding in findings if finding.severity is Severity.ERROR}


def accepted(program: str, document: object) -> bool:
    try:
        if program == RULES:
            return not rule_errors(document)
        if program == SHAPES:
            return bool(read_catalogue(json.dumps(document), "c.yaml").shapes)
        if program == ADAPTER:
            read_scheduling(json.dumps(document), "s.yaml")
            return True
        return not read_configuration(json.dumps(document), "r.yaml").refused
    except DocumentError:
        return False


def refusals(program: str, document: object) -> list[str]:
    return [error.message for error in VALIDATORS[program].iter_errors(document)]


def disagree(program: str, document: object) -> bool:
    """Return whether the schema refuses what the reader accepts."""
    return accepted(program, document) and refusals(program, document) != []


@pytest.mark.parametrize(("program", "document"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_with_every_key_are_accepted_by_both(program: str, document: object) -> None:
    assert accepted(program, document)
    assert refusals(program, document) == []


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(VALUES))
def test_what_the_reader_accepts_the_schema_accepts(place: tuple[str, tuple[Any, ...]], value: object) -> None:
    name, path = place
    program, document = DOCUMENTS[name]
    assert not disagree(program, with_value(document, path, value))


RULE_PLACES: Final = [path for name, path in PLACES if name == "rules"]
FORM: Final = {Code.UNKNOWN_KEY.value, Code.WRONG_KIND.value, Code.MISSING_KEY.value}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(RULE_PLACES), st.sampled_from(VALUES))
def test_what_the_reader_of_rules_refuses_for_its_form_the_schema_refuses(path: tuple[Any, ...], value: object) -> None:
    changed = with_value(DOCUMENTS["rules"][1], path, value)
    assert not (rule_errors(changed) & FORM) or refusals(RULES, changed)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_empty_mapping_is_read_or_refused_wherever_it_stands(name: str) -> None:
    program, document = DOCUMENTS[name]
    paths = [path for path, value in values_of(document) if path and isinstance(value, dict)]
    read = [path for path in paths if accepted(program, with_value(document, path, {}))]
    assert len(read) < len(paths)
    assert [path for path in read if refusals(program, with_value(document, path, {}))] == []


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("rules", ("rules", 0, "metricQuery"), "up"),
        ("rules", ("rules", 0, "seriesQuery"), " "),
        ("rules", ("rules", 0, "metricsQuery"), None),
        ("rules", ("rules", 0, "resources"), None),
        ("rules", ("rules", 0, "seriesFilters"), "a"),
        ("rules", ("rules", 0, "onNoData"), "zero"),
        ("rules", ("rules", 0, "maxSampleAge"), 60),
        ("rules", ("rules", 0, "foreignNamespaces"), "ignore"),
        ("rules", ("rules", 0, "resources", "overrides", "app"), "deployment"),
        ("rules", ("externalRules", 0, "resources", "namespaced"), "maybe"),
        ("rules", ("externalRules", 0, "onNoData", "value"), ""),
        ("rules", ("resourceRules", "gpu"), {}),
        ("rules", ("resourceRules", "window"), "soon"),
        ("nodes", ("policys",), []),
        ("nodes", ("policies", 0, "weight"), 0),
        ("nodes", ("policies", 0, "args", "zones"), 1),
        ("nodes", ("filter", "cpu"), 0.8),
        ("brakes", ("recommendations", 0, "name"), None),
        ("brakes", ("recommendations", 0, "outputs"), ["metrics"]),
        ("predictive", ("pollInterval",), "soon"),
        ("predictive", ("recommendations", 0, "predictive", "horizon"), 120),
        ("predictive", ("recommendations", 0, "predictive", "model"), "lstm"),
        ("predictive", ("recommendations", 0, "predictive", "minReplicas"), "two"),
        ("clusterSize", ("recommendations", 0, "clusterSize", "nodeGroups", 0, "max"), -1),
        ("clusterSize", ("recommendations", 0, "clusterSize", "expander"), "cheapest"),
    ],
)
def test_an_editor_sees_what_the_reader_refuses(name: str, path: tuple[Any, ...], value: object) -> None:
    program, document = DOCUMENTS[name]
    changed = with_value(document, path, value)
    assert refusals(program, changed) != []
    assert not accepted(program, changed)


@pytest.mark.parametrize("program", SCHEMAS)
def test_the_files_are_what_the_programs_print(program: str) -> None:
    file = SCHEMAS[program][0]
    binary, words = COMMANDS[program]
    printed = run(*words, program=binary)
    assert (printed.code, printed.error) == (0, "")
    assert printed.out == file.read_text(), "run: make docs"


def types_are_missing(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the places of a schema that have no type, or that refer to other schemas."""
    if "$ref" in schema or not ("type" in schema or "anyOf" in schema):
        yield path
    others = schema.get("additionalProperties")
    inner = {**schema.get("properties", {}), "*": others if isinstance(others, dict) else None}
    for name, part in [*inner.items(), ("[]", schema.get("items")), *enumerate(schema.get("anyOf", []))]:
        if part is not None:
            yield from types_are_missing(part, f"{path}.{name}")


@pytest.mark.parametrize("validator", VALIDATORS.values(), ids=VALIDATORS)
def test_a_schema_is_valid_and_has_a_type_everywhere(validator: Draft202012Validator) -> None:
    Draft202012Validator.check_schema(validator.schema)
    assert list(types_are_missing(json.loads(json.dumps(validator.schema)))) == []


def test_the_configurations_of_the_pages_and_of_the_chart_are_accepted() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page)]
    texts = {block.place: recommender_text(block) for block in blocks if is_recommender(block)}
    wrong = {place: refusals(RECOMMENDER, plain(text or "")) for place, text in texts.items()}
    assert len(texts) > 10
    assert {place: said for place, said in wrong.items() if said} == {}
    assert refusals(ADAPTER, plain((CHECKOUT / "helm/tidewatch/files/scheduler/scheduling.yaml").read_text())) == []
