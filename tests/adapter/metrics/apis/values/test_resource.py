"""metrics.k8s.io as a handler answers it, beside what the golden exchanges show."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.answers import BySelector, NamedBySelector, UsageAnswer
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.rulebook.model import ResourceRules
from adapter.metrics.rulebook.parsing.resource_rules import NODES, PODS
from tests.adapter.metrics.apis.fakes import NOW, AskedUsage, FakeReadings, Server, resource_rules
from tests.adapter.metrics.apis.golden_usage import usage_readings

if TYPE_CHECKING:
    from adapter.foundation.web.http import Response

GROUP = "metrics.k8s.io"
R1 = f"/apis/{GROUP}/v1beta1"
ALL = BySelector(EVERYTHING)


def message(response: Response) -> str:
    found: str = json.loads(response.body)["message"]
    return found


def test_values_need_a_rule_in_force_and_discovery_does_not() -> None:
    readings = usage_readings()
    server = Server(readings)
    discovery, values = (R1, f"/apis/{GROUP}"), (f"{R1}/nodes", f"{R1}/namespaces/shop/pods/web-0")

    def statuses(paths: tuple[str, str]) -> list[int]:
        return [server.get(path).status for path in paths]

    assert (statuses(discovery), statuses(values)) == ([200, 200], [200, 200])
    readings.catalogue = Catalogue(generation=2)
    assert (statuses(discovery), statuses(values)) == ([200, 200], [404, 404])
    assert "no `resourceRules` that are in force" in message(server.get(values[0]))
    readings.catalogue = Catalogue(generation=3, resource=resource_rules("memory"))
    assert (statuses(discovery), statuses(values)) == ([200, 200], [200, 200])


def test_usage_that_no_rule_provides_is_404() -> None:
    whole = resource_rules("cpu")
    (rule,) = whole.rules
    pods_alone = ResourceRules((replace(rule, metrics=rule.metrics[:1]),))
    server = Server(FakeReadings(Catalogue(resource=pods_alone), {AskedUsage(PODS, "shop", ALL): _nothing()}))
    assert server.get(f"{R1}/namespaces/shop/pods").status == 200
    answer = server.get(f"{R1}/nodes")
    assert answer.status == 404
    assert "the usage of nodes is unknown: each resource rule lacks" in message(answer)


@pytest.mark.parametrize("path", ["namespaces/shop/pods", "namespaces/shop/pods/web-0", "nodes"])
def test_requests_for_metadata_alone_get_whole_objects(path: str) -> None:
    server, form = (
        Server(usage_readings()),
        "PartialObjectMetadata" if path.endswith("web-0") else "PartialObjectMetadataList",
    )
    whole = server.get(f"{R1}/{path}")
    asked = server.get(f"{R1}/{path}", ("Accept", f"application/json;as={form};g=meta.k8s.io;v=v1"))
    assert (asked.status, asked.content_type) == (200, "application/json")
    assert json.loads(asked.body) == json.loads(whole.body)


def test_a_table_has_a_column_for_each_resource_that_is_served() -> None:
    rules = resource_rules("memory", "cpu")
    for served, names in ((rules, ["cpu", "memory"]), (resource_rules("memory"), ["memory"])):
        server = Server(FakeReadings(Catalogue(resource=served), {AskedUsage(NODES, None, ALL): _nothing()}))
        table = server.get(f"{R1}/nodes", ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"))
        columns = [column["name"] for column in json.loads(table.body)["columnDefinitions"]]
        assert columns == ["Name", *names, "Window"]


@pytest.mark.parametrize(
    "query",
    ["fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db", "includeObject=None&includeObject=Object"],
)
def test_a_repeated_parameter_is_refused(query: str) -> None:
    answer = Server(usage_readings()).get(f"{R1}/pods?{query}")
    assert answer.status == 400
    assert "is given twice" in message(answer)


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("nodes", AskedUsage(NODES, None, NamedBySelector("n1", EVERYTHING))),
        ("pods", AskedUsage(PODS, None, NamedBySelector("n1", EVERYTHING))),
        ("namespaces/shop/pods", AskedUsage(PODS, "shop", NamedBySelector("n1", EVERYTHING))),
    ],
)
def test_a_list_restricted_to_one_name_requests_only_that_name(path: str, asked: AskedUsage) -> None:
    """A caller may have access to that name alone, so warnings must not mention others."""
    readings = FakeReadings(Catalogue(resource=resource_rules("cpu")), {asked: _nothing()})
    server = Server(readings)
    assert server.get(f"{R1}/{path}?fieldSelector=metadata.name%3Dn1").status == 200
    assert server.get(f"{R1}/{path}?fieldSelector=metadata.name!%3Dn1").status == 500, "which was not requested"


def test_requests_and_answer_ages_of_the_group_are_measured() -> None:
    server = Server(usage_readings())
    server.get(f"{R1}/namespaces/shop/pods")
    server.get(f"{R1}/namespaces/empty/pods")
    server.get(f"{R1}/nodes/n9")
    counted = {
        code: server.sample("tidewatch_adapter_requests_total", group=GROUP, verb="GET", code=code)
        for code in ("200", "404")
    }
    assert counted == {"200": 2, "404": 1}
    # An empty list is 0 s old, and a list of pods as old as its oldest item.
    assert server.sample("metrics_apiserver_metric_freshness_seconds_count", group=GROUP) == 2
    assert server.sample("metrics_apiserver_metric_freshness_seconds_sum", group=GROUP) == pytest.approx(14.0)


def _nothing() -> UsageAnswer:
    return UsageAnswer((), 60.0, NOW)
