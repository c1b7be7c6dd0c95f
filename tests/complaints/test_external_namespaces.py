"""External metrics that belong to no namespace, or to another one than that of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.caller import number

if TYPE_CHECKING:
    from tests.support.caller import Answer, Caller


def by_topic(answer: Answer) -> dict[str, int]:
    return {item["metricLabels"]["topic"]: int(number(item["value"])) for item in answer.items}


def test_a_rule_may_ignore_the_namespace_of_the_request__prometheus_adapter_195_324(caller: Caller) -> None:
    """The key is `namespaced: false`, as PA PR 252 introduced it (also PA 530)."""
    for namespace in ("shop", "a-namespace-without-series"):
        assert by_topic(caller.external("bus_lag", namespace)) == {"orders": 12, "mails": 3}
        assert by_topic(caller.external("bus_lag", namespace, labelSelector="topic=orders")) == {"orders": 12}


def test_all_other_rules_serve_only_the_namespace_of_the_request__prometheus_adapter_195_324(caller: Caller) -> None:
    for namespace, total in (("shop", 8), ("other", 400)):
        (item,) = caller.external("queue_depth", namespace).items
        assert number(item["value"]) == total
    assert caller.external("queue_depth", "a-namespace-without-series").items == []
    assert caller.external("queue_depth", "shop", labelSelector="namespace=other").items == []
