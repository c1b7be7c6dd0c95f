from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.quantities import milli_of, parse_quantity
from adapter.metrics.apis.values.tables import usage_table
from adapter.metrics.apis.values.usage_lists import Pieces, resource_quantity, usage_list, usage_object
from adapter.metrics.readings.answers import UsageItem

NOW = 1_787_565_604.0
POD = UsageItem(
    "shop",
    "web-0",
    {"tier": "front", "app": "web"},
    1_787_565_600.9,
    {"app": {"memory": 104_857_600.0, "cpu": 0.25}, "proxy": {"cpu": 0.0625, "memory": 10_485_760.0}},
)
HALF = UsageItem("shop", "web-1", {}, 1_787_565_600.0, {"app": {"cpu": 0.1, "memory": 5.0}, "proxy": {"cpu": 0.2}})
NODE = UsageItem(None, "n1", {}, 1_787_565_600.0, {"": {"cpu": 1.5, "memory": 2.0**33}})


def test_a_list_of_pods_byte_for_byte() -> None:
    assert usage_list("pods", [POD], 60.0, NOW).decode() == (
        '{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":['
        '{"metadata":{"name":"web-0","namespace":"shop","creationTimestamp":"2026-08-24T10:00:04Z",'
        '"labels":{"app":"web","tier":"front"}},'
        '"timestamp":"2026-08-24T10:00:00Z","window":"1m0s","containers":['
        '{"name":"app","usage":{"cpu":"250m","memory":"100Mi"}},'
        '{"name":"proxy","usage":{"cpu":"62m","memory":"10Mi"}}]}]}\n'
    )


def test_one_node_byte_for_byte() -> None:
    assert usage_object("nodes", NODE, Pieces(15.021, NOW)).decode() == (
        '{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1",'
        '"metadata":{"name":"n1","creationTimestamp":"2026-08-24T10:00:04Z"},'
        '"timestamp":"2026-08-24T10:00:00Z","window":"15.021s","usage":{"cpu":"1500m","memory":"8Gi"}}'
    )


def test_lists_without_items_are_empty() -> None:
    assert json.loads(usage_list("nodes", [], 60.0, NOW))["items"] == []
    assert json.loads(usage_table("v1", "pods", ["cpu"], [], 60.0, NOW, "Metadata"))["rows"] == []


def test_an_unknown_resource_is_left_out() -> None:
    item = json.loads(usage_list("pods", [HALF], 60.0, NOW))["items"][0]
    assert item["containers"] == [
        {"name": "app", "usage": {"cpu": "100m", "memory": "5"}},
        {"name": "proxy", "usage": {"cpu": "200m"}},
    ]


def test_a_table_sums_containers_only_if_all_have_a_value() -> None:
    table = json.loads(usage_table("v1beta1", "pods", ["cpu", "memory"], [POD, HALF], 300.0, NOW, "None"))
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1beta1")
    assert [(column["name"], column["format"]) for column in table["columnDefinitions"]] == [
        ("Name", "name"),
        ("cpu", "quantity"),
        ("memory", "quantity"),
        ("Window", "duration"),
    ]
    assert [row["cells"] for row in table["rows"]] == [
        ["web-0", "312m", "110Mi", "5m0s"],
        ["web-1", "300m", "<unknown>", "5m0s"],
    ]
    assert [row["object"] for row in table["rows"]] == [None, None]


@pytest.mark.parametrize(
    ("include", "kind", "keys"),
    [
        ("Metadata", ("PartialObjectMetadata", "meta.k8s.io/v1"), {"kind", "apiVersion", "metadata"}),
        (
            "Object",
            ("NodeMetrics", "metrics.k8s.io/v1beta1"),
            {"kind", "apiVersion", "metadata", "timestamp", "window", "usage"},
        ),
    ],
)
def test_a_row_holds_the_requested_object(include: str, kind: tuple[str, str], keys: set[str]) -> None:
    table = json.loads(usage_table("v1", "nodes", ["cpu"], [NODE], 60.0, NOW, include))
    (row,) = table["rows"]
    assert row["cells"] == ["n1", "1500m", "1m0s"]
    assert (row["object"]["kind"], row["object"]["apiVersion"]) == kind
    assert row["object"].keys() == keys
    assert row["object"]["metadata"]["name"] == "n1"


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 0.0, "0"),
        ("cpu", 0.0019, "1m"),
        ("cpu", 64.0, "64"),
        ("cpu", 2000.0, "2k"),
        ("memory", 0.0, "0"),
        ("memory", 1.5, "1500m"),
        ("memory", 1023.0, "1023"),
        ("memory", 1024.0, "1Ki"),
        ("memory", 1000.0, "1k"),
        ("memory", 1048577.0, "1048577"),
        ("memory", 1_048_576.25, "1048576250m"),
        ("memory", 2.0**50, "1Pi"),
    ],
)
def test_quantities_are_served_in_canonical_form(resource: str, value: float, text: str) -> None:
    assert resource_quantity(resource, value) == text


@given(st.sampled_from(["cpu", "memory"]), st.floats(0, 9e15))
def test_a_quantity_is_the_value_truncated_to_thousandths(resource: str, value: float) -> None:
    assert Decimal(parse_quantity(resource_quantity(resource, value)).nanos).scaleb(-6) == milli_of(value)
