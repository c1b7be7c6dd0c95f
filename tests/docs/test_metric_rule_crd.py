"""The definition of MetricRule is current and structural, and agrees with the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.metrics.rulebook.objects.metric_rule import HAS_NO_MEANING
from tests.docs.metric_rule_schema import OBJECT, SPEC, VALIDATOR
from tests.docs.test_schemas import VALUES, places, with_value
from tests.support.rule_objects import QUEUE, RATE, rule_object

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYTHING: dict[str, Any] = {
    "api": "custom",
    "rule": {
        **RATE["rule"],
        "seriesFilters": [{"is": "^hits"}, {"isNot": "_bucket$"}],
        "resources": {"template": "<<.Resource>>", "overrides": {"app": {"group": "apps", "resource": "deployment"}}},
        "name": {"matches": "^(.*)_total$", "as": "${1}_rate"},
        "onNoData": "500m",
        "maxSampleAge": "1m",
        "refresh": "30s",
        "window": "2m",
    },
}


PLACES = list(places(EVERYTHING))
FORM = {"unknown-key", "wrong-kind", "missing-key"}


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for key, value in schema.get("properties", {}).items():
        yield from parts(value, f"{path}.{key}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{path}.*")


def test_it_is_structural() -> None:
    wrong = [
        path
        for path, schema in parts(OBJECT)
        if not (isinstance(schema.get("type"), str) or schema.get("x-kubernetes-int-or-string"))
        or {"anyOf", "$ref"} & schema.keys()
        or schema.get("additionalProperties") is False
    ]
    assert wrong == []


def test_every_key_has_a_description() -> None:
    assert [
        path for path, schema in parts(SPEC["properties"]["rule"]) if "*" not in path and not schema.get("description")
    ] == []


@pytest.mark.parametrize("spec", [QUEUE, RATE, EVERYTHING])
def test_both_accept_good_objects(spec: dict[str, Any]) -> None:
    assert rule_object(spec).findings == ()
    assert list(VALIDATOR.iter_errors(spec)) == []


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(VALUES))
def test_what_the_reader_refuses_for_its_form_the_api_server_refuses(place: tuple[Any, ...], value: object) -> None:
    changed = with_value(EVERYTHING, place, value)
    found = {finding.code for finding in rule_object(changed).findings if finding.severity == "error"}
    assert not (found & FORM) or list(VALIDATOR.iter_errors(changed))


def test_keys_without_a_meaning_are_not_fields() -> None:
    assert not HAS_NO_MEANING.keys() & SPEC["properties"]["rule"]["properties"].keys()
