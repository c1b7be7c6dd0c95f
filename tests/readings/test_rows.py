from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from adapter.objects.selectors import parse_selector
from adapter.readings.errors import PartialAnswerError, UnanswerableSelectorError
from tests.support.readings import House, ScriptedPrometheus, make_house, reply

if TYPE_CHECKING:
    from tests.support.readings import Reply

QUEUES = reply(
    ({"queue": "a", "shard": "1", "namespace": "shop"}, "1"),
    ({"queue": "a", "shard": "2", "namespace": "shop"}, "2"),
    ({"queue": "b", "namespace": "shop"}, "4"),
    ({"queue": "n", "namespace": "shop"}, "NaN"),
    ({"queue": "a", "namespace": "bank"}, "8"),
)


def house_with(answer: Reply) -> tuple[House, ScriptedPrometheus]:
    prometheus = ScriptedPrometheus(answer=lambda _query: answer)
    return make_house(prometheus), prometheus


def ask(house: House, name: str, selector: str, namespace: str = "shop") -> list[tuple[dict[str, str], float]]:
    answer = house.readings.external(house.external(name), namespace, parse_selector(selector))
    return [(dict(row.labels), row.value) for row in answer.rows]


def test_rows_are_filtered_for_each_asker_from_one_answer() -> None:
    house, prometheus = house_with(QUEUES)

    assert ask(house, "queue_rows", "queue=b") == [({"queue": "b", "namespace": "shop"}, 4.0)]
    assert len(ask(house, "queue_rows", "queue=a")) == 2
    assert len(ask(house, "queue_rows", "queue in (a,b)")) == 3
    assert ask(house, "queue_rows", "queue=b,shard=1") == []
    assert len(prometheus.asked) == 1


def test_rows_of_other_namespaces_are_never_served_and_counted() -> None:
    house, _ = house_with(QUEUES)

    assert all(labels["namespace"] == "shop" for labels, _ in ask(house, "queue_rows", "queue=a"))
    assert house.counter("tidewatch_adapter_dropped_samples_total", reason="foreign_namespace") == 1


def test_a_folded_answer_is_what_the_exact_query_would_have_summed() -> None:
    house, _ = house_with(QUEUES)

    assert ask(house, "queue_depth", "queue=a") == [({}, 3.0)]
    assert ask(house, "queue_depth", "queue!=n") == [({}, 7.0)]
    assert ask(house, "queue_depth", "queue=missing") == []


def test_a_sum_with_a_nan_in_it_is_no_data() -> None:
    house, _ = house_with(QUEUES)

    assert ask(house, "queue_depth", "queue in (a,n)") == []
    assert ask(house, "queue_rows", "queue=n") == []
    assert house.counter("tidewatch_adapter_dropped_samples_total", reason="nan") == 2


def test_a_list_with_some_values_missing_is_an_error_since_its_sum_would_be_too_low() -> None:
    house, _ = house_with(QUEUES)

    for _ in range(2):
        with pytest.raises(PartialAnswerError, match=r"1 of 2 series have no finite value .*queue=\"n\"} is nan"):
            ask(house, "queue_rows", "queue in (b,n)")


def test_a_selector_that_is_no_regular_expression_is_the_askers_error_alone() -> None:
    house, _ = house_with(QUEUES)
    odd = parse_selector("queue=a")
    answer = house.readings.external(house.external("queue_rows"), "shop", odd)

    with pytest.raises(UnanswerableSelectorError):
        house.readings.external(house.external("queue_rows"), "shop", parse_selector("queue>5"))

    assert house.readings.external(house.external("queue_rows"), "shop", odd) == answer


def test_drops_are_counted_once_for_each_asker_and_reading() -> None:
    house, _ = house_with(QUEUES)
    tally: Counter[str] = Counter()
    for _ in range(3):
        ask(house, "queue_rows", "queue=n")
        tally["asked"] += 1

    assert house.counter("tidewatch_adapter_dropped_samples_total", reason="nan") == 1
    assert tally["asked"] == 3
