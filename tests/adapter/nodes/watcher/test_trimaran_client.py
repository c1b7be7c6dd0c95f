"""The stand-in refuses what the real client refuses."""

from __future__ import annotations

import pytest

from tests.support.trimaran_client import (
    RejectedDocumentError,
    Seen,
    decoded_document,
    fetched,
    mean_and_deviation,
    peaks_cpu,
    target_load_packing_cpu,
)


def document(value: str, *, map_key: str = "NodeMetricsMap", operator: str = "AVG") -> bytes:
    metrics = f'{{"type":"CPU","operator":"{operator}","value":{value},"unknown":[1]}}'
    return f'{{"timestamp":1.9,"data":{{"{map_key}":{{"a":{{"metrics":[{metrics}]}}}}}}}}'.encode()


@pytest.mark.parametrize("value", ["NaN", "Infinity", '"42"', "1e-20", "99.99999999999999999999", "true"])
def test_one_invalid_value_rejects_the_whole_document(value: str) -> None:
    with pytest.raises(RejectedDocumentError):
        decoded_document(document(value))


@pytest.mark.parametrize(("value", "seen"), [("42", 42.0), ("1.38e-15", 1.38e-15), ("null", 0.0), ("0.5", 0.5)])
def test_values_that_the_client_accepts_are_decoded(value: str, seen: float) -> None:
    found = decoded_document(document(value))
    assert found.timestamp == 1
    assert target_load_packing_cpu(found.nodes["a"]) == Seen(is_valid=True, mean=seen, deviation=0.0)


@pytest.mark.parametrize("map_key", ["nodeMetricsMap", "nodemetricsmap", "a"])
def test_keys_in_another_case_give_no_nodes_and_no_error(map_key: str) -> None:
    assert decoded_document(document("42", map_key=map_key)).nodes == {}


def test_an_unknown_operator_makes_a_resource_look_idle() -> None:
    node = decoded_document(document("42", operator="P95")).nodes["a"]
    assert mean_and_deviation(node, "CPU") == Seen(is_valid=True, mean=0.0, deviation=0.0)
    assert not target_load_packing_cpu(node).is_valid


def test_plugins_differ_in_which_of_several_values_they_use() -> None:
    first, last = (decoded_document(document(value)).nodes["a"] for value in ("1", "2"))
    assert target_load_packing_cpu(first + last).mean == 2.0
    assert peaks_cpu(first + last).mean == 1.0


def test_any_status_but_200_is_an_error() -> None:
    with pytest.raises(RejectedDocumentError, match="503"):
        fetched(503, document("1"))
