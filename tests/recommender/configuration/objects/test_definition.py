"""The CustomResourceDefinition is made from the strict reader, is structural, and is up to date in the chart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from docs.generate.definitions import DEFINITIONS, template
from recommender.configuration.objects.definition import KINDS, definition
from recommender.kinds.table import KINDS as ALL_KINDS
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator


def schema() -> dict[str, Any]:
    found: dict[str, Any] = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def nodes(found: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, found
    for key, each in found.get("properties", {}).items():
        yield from nodes(each, f"{path}.{key}")
    for key in ("items", "additionalProperties"):
        if key in found:
            yield from nodes(found[key], f"{path}[]")


@pytest.mark.parametrize("path", DEFINITIONS)
def test_the_template_of_the_chart_is_up_to_date(path: str) -> None:
    component, made = DEFINITIONS[path]
    message = "make it anew: .venv/bin/python -m docs.generate"
    assert (CHECKOUT / path).read_text(encoding="utf-8") == template(made(), component), message


def test_every_node_is_structural() -> None:
    for path, node in nodes(schema()):
        free = node.get("x-kubernetes-preserve-unknown-fields") or node.get("x-kubernetes-int-or-string")
        assert isinstance(node.get("type"), str) or free, path
        assert node.get("additionalProperties") is not False, path
        # A default of the spec would count as written; that of the status says that none has been written.
        assert node.get("default") == ({"observedGeneration": -1} if path == ".status" else None), path
        assert not isinstance(node.get("exclusiveMinimum"), float | int) or node["exclusiveMinimum"] is True, path


def test_objects_have_only_the_kinds_that_can_be_limited_to_a_namespace() -> None:
    assert set(ALL_KINDS) - set(KINDS) == {"clusterSize", "resources"}
    spec = schema()["properties"]["spec"]["properties"]
    assert set(spec) >= {*KINDS, "targets", "outputs", "paused", "maxStep", "maxChangesPerHour"}
    assert "name" not in spec
    assert spec["outputs"]["items"]["enum"] == ["metric", "scale"]


def test_validation_rules_name_keys_of_the_schema() -> None:
    spec = schema()["properties"]["spec"]
    for rule in spec["x-kubernetes-validations"]:
        for path in re.findall(r"self((?:\.[a-zA-Z]+)+)", rule["rule"]):
            node = spec
            for key in path.lstrip(".").split("."):
                node = node["properties"][key]
