"""Lists of many values are written and compressed once, in all three APIs, until one of their values changes."""

from __future__ import annotations

from copy import deepcopy
from gzip import decompress
from typing import TYPE_CHECKING, TypeAlias

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.web.prepared import FROM_ITEMS
from adapter.metrics.readings.answers import BySelector, UsageAnswer, UsageItem
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS
from tests.adapter.metrics.apis.fakes import (
    AT,
    DEPLOYMENTS,
    AskedExternal,
    AskedObjects,
    AskedUsage,
    FakeReadings,
    Server,
    all_pods,
    answer,
    custom_metric,
    external_metric,
    resource_rules,
    rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.web.http import Response
    from tests.adapter.metrics.apis.fakes import Answer, Asked

CUSTOM, EXTERNAL = custom_metric("http_requests"), external_metric("queue")
OF_DEPLOYMENTS = custom_metric("http_requests", DEPLOYMENTS)
USAGE = "/apis/metrics.k8s.io/v1beta1"
TABLE = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
Make: TypeAlias = "Callable[[int, float], Answer]"


def usage(namespace: str | None, container: str) -> Make:
    def make(items: int, last: float) -> UsageAnswer:
        values = [*[1.0] * (items - 1), last]
        found = [
            UsageItem(namespace, f"x{place:03}", {"app": "web"}, AT, {container: {"cpu": cpu, "memory": 1e6}})
            for place, cpu in enumerate(values)
        ]
        return UsageAnswer(tuple(found), 90.0, AT)

    return make


LISTS: dict[str, tuple[str, Asked, Make]] = {
    "custom": (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/http_requests",
        all_pods(CUSTOM),
        lambda items, last: answer(*((f"x{place:03}", 1.0) for place in range(items - 1)), ("z", last)),
    ),
    "external": (
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue",
        AskedExternal(EXTERNAL, "shop", EVERYTHING),
        lambda items, last: rows(*(({"q": f"{place}"}, 1.0) for place in range(items - 1)), ({"q": "z"}, last)),
    ),
    "pods": (f"{USAGE}/namespaces/shop/pods", AskedUsage(PODS, "shop", BySelector(EVERYTHING)), usage("shop", "app")),
    "nodes": (f"{USAGE}/nodes", AskedUsage(NODES, None, BySelector(EVERYTHING)), usage(None, "")),
}


class Lists:
    """A server that gets a new answer before each request, since each request looks its values up."""

    def __init__(self, name: str) -> None:
        self.path, self.asked, self.make = LISTS[name]
        metrics = resource_rules("cpu", "memory")
        self.readings = FakeReadings(Catalogue(metrics=(CUSTOM, EXTERNAL), resource=metrics))
        self.server = Server(self.readings)

    def get(self, items: int, last: float, *headers: tuple[str, str]) -> Response:
        self.readings.answers[self.asked] = deepcopy(self.make(items, last))
        found = self.server.get(self.path, *headers)
        assert found.status == 200, found.body
        return found


@pytest.mark.parametrize("name", LISTS)
def test_equal_lists_of_many_values_are_written_once(name: str) -> None:
    lists = Lists(name)
    first, second = lists.get(FROM_ITEMS, 2.0), lists.get(FROM_ITEMS, 2.0)
    assert second.body is first.body
    few = lists.get(FROM_ITEMS - 1, 2.0), lists.get(FROM_ITEMS - 1, 2.0)
    assert few[0].body == few[1].body
    assert few[0].body is not few[1].body, "written anew, which takes less than to keep it"


@pytest.mark.parametrize("name", LISTS)
def test_a_value_that_changes_is_served_at_once(name: str) -> None:
    lists, alone = Lists(name), Lists(name)
    lists.get(FROM_ITEMS, 2.0)
    changed = lists.get(FROM_ITEMS, 7.0)
    assert changed.body == alone.get(FROM_ITEMS, 7.0).body
    assert b'"7"' in changed.body


@pytest.mark.parametrize("name", LISTS)
def test_long_lists_are_compressed_once(name: str) -> None:
    lists, gzip = Lists(name), ("Accept-Encoding", "gzip")
    many = 40 * FROM_ITEMS
    whole = lists.get(many, 2.0)
    first, second = lists.get(many, 2.0, gzip), lists.get(many, 2.0, gzip)
    assert first.body is second.body
    assert decompress(first.body) == whole.body


@pytest.mark.parametrize("name", ["pods", "nodes"])
def test_a_table_is_kept_beside_the_list(name: str) -> None:
    lists = Lists(name)
    whole, table = lists.get(FROM_ITEMS, 2.0), lists.get(FROM_ITEMS, 2.0, TABLE)
    assert whole.body != table.body
    assert lists.get(FROM_ITEMS, 2.0).body is whole.body
    assert lists.get(FROM_ITEMS, 2.0, TABLE).body is table.body


class Alike(FakeReadings):
    """Readings with equal values for all questions of an API, as while nothing is used."""

    def _answer(self, asked: Asked) -> Answer:
        name = {AskedObjects: "custom", AskedExternal: "external", AskedUsage: "pods"}[type(asked)]
        return LISTS[name][2](FROM_ITEMS, 1.0)


OF_PODS, QUEUE = LISTS["custom"][0], LISTS["external"][0]
OLD_TABLE = (TABLE[0], TABLE[1].removesuffix("v1") + "v1beta1")
QUESTIONS = {
    "the version": (OF_PODS, OF_PODS.replace("v1beta2", "v1beta1")),
    "the namespace": (OF_PODS, OF_PODS.replace("shop", "other")),
    "the kind": (OF_PODS, OF_PODS.replace("pods", "deployments.apps")),
    "the metric": (OF_PODS, OF_PODS.replace("http_requests", "errors")),
    "the selector of the metric": (OF_PODS, f"{OF_PODS}?metricLabelSelector=code%3D500"),
    "the external metric": (QUEUE, QUEUE.replace("queue", "lag")),
}


@pytest.mark.parametrize(("one", "other"), QUESTIONS.values(), ids=QUESTIONS)
def test_equal_values_under_another_question_have_bytes_of_their_own(one: str, other: str) -> None:
    served = Catalogue(metrics=(CUSTOM, custom_metric("errors"), OF_DEPLOYMENTS, EXTERNAL, external_metric("lag")))
    server = Server(Alike(served))
    first, second = server.get(one), server.get(other)
    assert (first.status, second.status) == (200, 200)
    assert second.body == Server(Alike(served)).get(other).body
    assert second.body != first.body


@pytest.mark.parametrize(("query", "header"), [("", OLD_TABLE), ("?includeObject=None", TABLE)])
def test_tables_of_equal_values_differ_by_version_and_included_objects(query: str, header: tuple[str, str]) -> None:
    server = Server(Alike(Catalogue(resource=resource_rules("cpu", "memory"))))
    first, second = server.get(LISTS["pods"][0], TABLE), server.get(f"{LISTS['pods'][0]}{query}", header)
    assert (first.status, second.status) == (200, 200)
    assert second.body != first.body
