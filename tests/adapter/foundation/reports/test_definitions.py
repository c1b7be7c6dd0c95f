"""The doctors say whether the CustomResourceDefinition of a kind is the one that they expect."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adapter.foundation.reports.definitions import DefinedKind, judge_definition, keys_of_schema
from adapter.foundation.reports.lines import CheckStatus

KIND: Final = DefinedKind(
    "tidewatch.io", "v1alpha1", "things", frozenset({"spec.a", "spec.list.b"}), lost="things: none of them counts"
)
SERVED: Final = {"resources": [{"name": "things"}, {"name": "things/status"}]}


def defined(*keys: str, version: str = "v1alpha1") -> dict[str, Any]:
    items = {"type": "object", "properties": {key: {} for key in keys}}
    spec = {"properties": {"a": {}, "list": {"type": "array", "items": items}}}
    schema = {"properties": {"spec": spec, "status": {"properties": {"c": {}}}}}
    return {"spec": {"versions": [{"name": version, "schema": {"openAPIV3Schema": schema}}]}}


@pytest.mark.parametrize(
    ("served", "definition", "status", "message"),
    [
        ({}, None, CheckStatus.ERROR, "affected: things: none of them counts"),
        ({"resources": [{"name": "others"}]}, None, CheckStatus.ERROR, "not installed in v1alpha1"),
        ({"resources": [{"name": "things"}]}, None, CheckStatus.ERROR, "no subresource status"),
        (SERVED, None, CheckStatus.OK, "may not read it"),
        (SERVED, defined("b"), CheckStatus.OK, "with all keys of this version"),
        (SERVED, defined(), CheckStatus.WARNING, "program: spec.list.b cannot"),
        (SERVED, defined("b", version="v1"), CheckStatus.WARNING, "spec.a, spec.list.b cannot be written"),
        (SERVED, {"spec": {"versions": "none"}}, CheckStatus.WARNING, "another version of this program"),
    ],
)
def test_a_definition_is_compared_with_the_expected_one(
    served: dict[str, Any], definition: dict[str, Any] | None, status: CheckStatus, message: str
) -> None:
    line = judge_definition(KIND, served, definition)
    assert line.status is status
    assert message in line.message
    assert (status is CheckStatus.OK) == (not line.fix)


def test_the_keys_of_a_schema_are_those_of_the_spec() -> None:
    schema = defined("b")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert keys_of_schema(schema) == {"spec.a", "spec.list", "spec.list.b"}
