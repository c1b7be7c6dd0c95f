"""The kinds of code blocks on the pages, and what shows that a block of a kind works.

Configuration is read by the reader of its program, a command line is parsed by its command, and a table says why a
command cannot run where the tests run.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final

import yaml
from jsonschema import Draft7Validator

from adapter.commands.readiness import READINESS
from adapter.foundation.documents.load import MappingNode, SequenceNode, load_documents, problems_within
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.metrics.rulebook.model import METRIC_RULE
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.report import rulebook_report
from adapter.nodes.configuration.reading import read_scheduling
from adapter.nodes.hotspots.descheduler_query import parse_query
from recommender.configuration.entry import Shared
from recommender.configuration.objects.object_reading import object_of, read_object
from recommender.configuration.objects.object_settings import RecommendationObjectSettings
from recommender.configuration.reading import read_configuration
from recommender.decisions.policy_settings import Output, Owners
from recommender.kinds.kind import Recommendation
from recommender.shapes.catalogue import read_catalogue
from tests.docs.blocks import Block, commands_of
from tests.docs.documented_commands import NEEDS_MORE, PROGRAMS, take_command
from tests.docs.metric_rule_schema import VALIDATOR as METRIC_RULES
from tests.support.checkout import CHECKOUT
from tests.support.rule_objects import rule_object
from tests.support.trimaran_client import decoded_document

if TYPE_CHECKING:
    from collections.abc import Callable

RULES: Final = CHECKOUT / "rules" / "adapter"
CHART: Final = CHECKOUT / "helm" / "tidewatch"
VALUES: Final = Draft7Validator(json.loads((CHART / "values.schema.json").read_text()))
_SECTIONS: Final = {"custom": "rules", "external": "externalRules", "resource": "resourceRules"}
"""The section of a rule file for each key of the chart's `rules`."""
PICTURES: Final = {
    "docs/architecture.md": r"adapter/ +everything|Prometheus ─>|sources, cluster ─>",
    "docs/explain.md": "the server could not find the metric",
    "docs/operating.md": "Warning: this answer is",
    "docs/sizes.md": "3 of 5 containers sized from",
    "docs/recommender.md": r"tidewatch-recommender run +--config FILE +decides",
}
"""Blocks that are neither configuration nor commands (drawings, overviews, messages), by page and by how they begin."""


def configuration(block: Block) -> MappingNode | SequenceNode | None:
    """Return the content of a block if it is YAML or JSON, which must be free of errors."""
    if block.language not in {"yaml", "json"} and not re.match(r"\w+:\n", block.text):
        return None
    root = load_documents(block.text, block.place).root
    assert isinstance(root, MappingNode | SequenceNode)
    assert list(problems_within(root)) == []
    return root


def keys_of(block: Block) -> set[str]:
    root = configuration(block)
    return {entry.name for entry in root.entries} if isinstance(root, MappingNode) else set()


def kind_of(block: Block) -> str | None:
    root = configuration(block)
    kind = root.get("kind") if isinstance(root, MappingNode) else None
    return None if kind is None else kind.text()


def indented(text: str, by: int) -> str:
    return re.sub("^(?=.)", " " * by, text, flags=re.MULTILINE)


RECOMMENDATIONS: Final = (
    "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\n"
    "prometheus: {url: http://prometheus:9090}\nrecommendations:\n"
)
TARGETS: Final = "  targets: [{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}]\n"


def recommender_text(block: Block) -> str | None:
    """Return a block as a whole configuration of the recommender; None if it is no part of such a file."""
    text, keys = block.text, keys_of(block)
    if kind_of(block) == "RecommenderConfiguration":
        return text
    if text.startswith("- name: "):
        return RECOMMENDATIONS + text
    if "nodeGroups" in keys:
        return f"{RECOMMENDATIONS}- name: nodes\n  clusterSize:\n{indented(text, 4)}"
    if keys & {"linear", "ladder", "interpolated", "configMap", "resources"}:
        mode = "    linear: {nodesPerReplica: 16}\n" if keys == {"resources"} else ""
        return f"{RECOMMENDATIONS}- name: dns\n  proportional:\n{mode}{indented(text, 4)}{TARGETS}"
    if keys == {"override"}:
        predictive = "{load: sum(load), loadPerReplica: 10, horizon: 2m"
        return f"{RECOMMENDATIONS}- name: web\n  predictive: {predictive}, {text.strip()}}}\n{TARGETS}"
    return None


def is_recommender(block: Block) -> bool:
    return configuration(block) is not None and recommender_text(block) is not None


def read_by_recommender(block: Block) -> None:
    found = read_configuration(recommender_text(block) or "", block.place)
    assert [str(problem) for each in found.refused for problem in each.problems] == []
    assert found.recommendations


def is_object(block: Block) -> bool:
    return kind_of(block) == "Recommendation"


def accepted_beside_the_file(block: Block) -> None:
    found = object_of(yaml.safe_load(block.text))
    assert found is not None
    settings = RecommendationObjectSettings(enabled=True, outputs=frozenset({Output.METRIC, Output.SCALE}))
    shared = Shared(60.0, Owners(), has_prometheus=True, for_backtest=False)
    assert isinstance(read_object(found, shared, settings), Recommendation)


def is_scheduling(block: Block) -> bool:
    return kind_of(block) == "SchedulingConfiguration" or keys_of(block) == {"filter"}


def read_by_nodes(block: Block) -> None:
    # A part of the page's configuration: pools need the label that makes them.
    header = "apiVersion: tidewatch.io/v1alpha1\nkind: SchedulingConfiguration\npoolLabel: example.com/pool\n"
    read_scheduling(block.text if "kind" in keys_of(block) else header + block.text, block.place)


def is_catalogue(block: Block) -> bool:
    return kind_of(block) == "MachineShapeCatalogue"


def read_as_catalogue(block: Block) -> None:
    assert (CHECKOUT / "docs/examples" / block.page.stem / "catalogue.yaml").read_text() == block.text
    assert read_catalogue(block.text, block.place).shapes


def is_role(block: Block) -> bool:
    return kind_of(block) == "ClusterRole"


def has_rules_of_rbac(block: Block) -> None:
    """Check the form of the rules; tests/e2e/hpa/test_kubectl_tidewatch.py uses the rights."""
    role = yaml.safe_load(block.text)
    assert role["apiVersion"] == "rbac.authorization.k8s.io/v1"
    assert [set(rule) for rule in role["rules"]] == [{"apiGroups", "resources", "verbs"}] * len(role["rules"])


def is_health_check(block: Block) -> bool:
    return kind_of(block) == "ConfigMap" and "resource.customizations.health." in block.text


def is_rules(block: Block) -> bool:
    named = bool(keys_of(block) & {"rules", "externalRules", "resourceRules"})
    return named and not is_role(block) and not is_values(block)


def read_as_rules(block: Block) -> None:
    resolve = partial(find_resource, BUILT_IN)
    documents = [load_documents(block.text, block.place)]
    report = rulebook_report(documents, parse_rulebook(documents, resolve), resolve)
    assert [finding.message for finding in report.all_findings if finding.severity == "error"] == []
    assert report.rules


def is_values(block: Block) -> bool:
    return block.language == "yaml" and block.page.parent == CHART


def taken_by_the_chart(block: Block) -> None:
    """Check values by the chart's schema, which Helm applies with the defaults, and what they contain by its reader."""
    values = yaml.safe_load(block.text)
    assert [error.message for error in VALUES.iter_errors(values) if error.validator != "required"] == []
    rules = {_SECTIONS[name]: part for name, part in values.get("rules", {}).items()}
    if rules:
        read_as_rules(replace(block, text=yaml.safe_dump(rules)))
    if "recommender" in values:
        read_by_recommender(replace(block, text=yaml.safe_dump(values["recommender"]["config"])))


def is_metric_rule(block: Block) -> bool:
    return kind_of(block) == METRIC_RULE


def read_as_metric_rule(block: Block) -> None:
    """Check that the reader accepts the block, and that the CustomResourceDefinition's schema does."""
    document = yaml.safe_load(block.text)
    assert rule_object(document["spec"]).findings == ()
    assert list(METRIC_RULES.iter_errors(document["spec"])) == []


def is_hpa(block: Block) -> bool:
    return kind_of(block) == "HorizontalPodAutoscaler" or "metrics" in keys_of(block)


def served_by_the_shipped_rules(block: Block) -> None:
    """Check that shipped rules have the metrics that a page's HPA reads."""
    document = yaml.safe_load(block.text)
    rules = "".join(path.read_text() for path in sorted(RULES.glob("*.yaml")))
    metrics = document.get("spec", document)["metrics"]
    for metric in metrics:
        (name,) = re.findall(r"'name': '(\w+)'", str({**metric[metric["type"].lower()], "target": None}))
        assert re.search(rf"\b{name}\b", rules), name


def is_scaled_object(block: Block) -> bool:
    return kind_of(block) == "ScaledObject"


def asks_for_published_series(block: Block) -> None:
    """Check that KEDA's triggers ask for series and labels of the recommender, and do not take their end for 0."""
    reference = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text()
    for trigger in yaml.safe_load(block.text)["spec"]["triggers"]:
        stated = trigger["metadata"]
        assert stated["ignoreNullValues"] == "false"
        series = re.search(r"tidewatch_\w+", stated["query"])
        assert series is not None
        row = re.search(rf"\| `{series[0]}` \| gauge \| (.*?) \|", reference)
        assert row is not None
        labels = set(re.findall(r"(\w+)=", stated["query"])) - {"namespace"}
        assert labels <= set(re.findall(r"`(\w+)`", row[1]))


def is_workload(block: Block) -> bool:
    return kind_of(block) in {"Deployment", "PodDisruptionBudget"} or keys_of(block) in (
        {"volumeMounts", "volumes"},
        {"spec"},
    )


def has_containers_that_start(block: Block) -> None:
    """Check the sidecar's arguments, the only part of the object that is not left to the API server's schema."""
    spec = (yaml.safe_load(block.text).get("spec") or {}).get("template", {}).get("spec", {})
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        if container["name"] == "readiness":
            program, command, *arguments = container["args"]
            assert (program, command) == ("tidewatch-adapter", "readiness")
            assert parse_flags(READINESS, arguments, {}).warnings == ()


def is_plugins(block: Block) -> bool:
    return keys_of(block) == {"pluginConfig"}


def has_an_address_without_a_path(block: Block) -> None:
    for plugin in yaml.safe_load(block.text)["pluginConfig"]:
        assert plugin["args"]["kind"] == f"{plugin['name']}Args"
        assert re.fullmatch(r"http://[\w.-]+:\d+", plugin["args"]["watcherAddress"])


def is_watcher_answer(block: Block) -> bool:
    return block.language == "json" and "NodeMetricsMap" in block.text


def read_by_trimaran(block: Block) -> None:
    assert decoded_document(block.text.encode()).nodes


ANSWERS: Final = {"NodeScores": "adapter/nodes/extender", "Hotspots": "adapter/nodes/hotspots"}


def is_answer(block: Block) -> bool:
    return kind_of(block) in ANSWERS


def has_the_keys_of_the_code(block: Block) -> None:
    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return {*value, *chain.from_iterable(map(keys, value.values()))}
        return set(chain.from_iterable(map(keys, value))) if isinstance(value, list) else set()

    source = "".join(path.read_text() for path in (CHECKOUT / ANSWERS[kind_of(block) or ""]).glob("*.py"))
    # Resources and labels are not those of the code.
    names = {"cpu", "memory", "k8s-app"}
    assert [key for key in keys(json.loads(block.text)) - names if not re.search(rf"\b{key}\b", source)] == []


def is_python(block: Block) -> bool:
    return block.language == "python"


def imports_what_exists(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom):
            module = import_module(node.module or "")
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def is_query(block: Block) -> bool:
    return block.text.startswith("tidewatch_node_utilization_ratio{")


def read_as_query(block: Block) -> None:
    parse_query(block.text.strip())


def is_picture(block: Block) -> bool:
    start = PICTURES.get(block.place.partition(":")[0])
    return not block.language and start is not None and re.match(start, block.text) is not None


def is_output(block: Block) -> bool:
    """Return whether the command of the block before prints this; the test of that command compares it."""
    return block.text.startswith("RECOMMENDATION ")


def is_commands(block: Block) -> bool:
    known = PROGRAMS.keys() | NEEDS_MORE.keys() | {"sed"}
    return block.language in {"", "sh"} and not is_picture(block) and commands_of(block)[0][0] in known


def take_commands(block: Block) -> None:
    for words in commands_of(block):
        take_command(words)


@dataclass(frozen=True, slots=True)
class Class:
    """One kind of block, and what makes it work."""

    name: str
    has: Callable[[Block], bool]
    take: Callable[[Block], object]


CLASSES: Final = (
    Class("recommender", is_recommender, read_by_recommender),
    Class("object", is_object, accepted_beside_the_file),
    Class("scheduling", is_scheduling, read_by_nodes),
    Class("catalogue", is_catalogue, read_as_catalogue),
    Class("rules", is_rules, read_as_rules),
    Class("values", is_values, taken_by_the_chart),
    Class("metric rule", is_metric_rule, read_as_metric_rule),
    # tests/docs/test_health_checks.py runs it.
    Class("health check", is_health_check, lambda _: None),
    Class("role", is_role, has_rules_of_rbac),
    Class("hpa", is_hpa, served_by_the_shipped_rules),
    Class("scaled object", is_scaled_object, asks_for_published_series),
    Class("workload", is_workload, has_containers_that_start),
    Class("plugins", is_plugins, has_an_address_without_a_path),
    Class("watcher", is_watcher_answer, read_by_trimaran),
    Class("answer", is_answer, has_the_keys_of_the_code),
    Class("python", is_python, imports_what_exists),
    Class("query", is_query, read_as_query),
    Class("picture", is_picture, lambda _: None),
    Class("output", is_output, lambda _: None),
    Class("commands", is_commands, take_commands),
)
