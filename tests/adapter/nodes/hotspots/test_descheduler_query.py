from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.web.http import Request
from adapter.nodes.hotspots.descheduler_query import METRIC, QueryExpressionError, parse_query, query_routes
from adapter.nodes.model.loads import STATS, WINDOW_NAMES, LoadResource
from adapter.nodes.model.scheduling_settings import HotspotSettings
from tests.adapter.nodes.extender.snapshots import NAN, WINDOW_END, load, nodes_snapshot, snapshot

if TYPE_CHECKING:
    from adapter.nodes.model.nodes_snapshot import NodesSnapshot

GOOD = f'{METRIC}{{resource="cpu",window="15m",stat="avg"}}'
ANY_QUERY = GOOD.replace('"cpu"', '"any"')
NOW = WINDOW_END + 20


def answer_of(
    current: NodesSnapshot, query: str = GOOD, *, now: float = NOW, method: str = "GET", **more: str
) -> tuple[int, Any]:
    """Return the status and the document."""
    (route,) = query_routes(lambda: current, lambda: now, HotspotSettings())
    fields = urlencode({"query": query, **more})
    in_target, in_body = (fields, b"") if method == "GET" else ("", fields.encode())
    response = route.handle(Request(method, "/api/v1/query", query=in_target, body=in_body))
    return response.status, json.loads(response.body)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_measured_node_has_a_sample_in_the_form_that_the_descheduler_reads(method: str) -> None:
    assert answer_of(nodes_snapshot({"cpu": [0.53, 0.0, 1.0]}), method=method, time=str(NOW)) == (
        200,
        {
            "status": "success",
            "data": {
                "resultType": "vector",
                "result": [
                    {"metric": {"instance": "node-1"}, "value": [WINDOW_END, "0.53"]},
                    {"metric": {"instance": "node-2"}, "value": [WINDOW_END, "0.0"]},
                    {"metric": {"instance": "node-3"}, "value": [WINDOW_END, "1.0"]},
                ],
            },
        },
    )


def test_values_are_within_the_range_that_the_descheduler_accepts() -> None:
    _, document = answer_of(nodes_snapshot({"cpu": [1.3, -0.1]}))
    assert [sample["value"][1] for sample in document["data"]["result"]] == ["1.0", "0.0"]


def test_the_requested_resource_window_and_statistic_are_returned() -> None:
    loads = snapshot(["node-1"], load(LoadResource.CPU, [0.1]), load(LoadResource.MEMORY, [0.2]))
    memory = loads.resources[LoadResource.MEMORY]
    stats = memory.stats.copy()
    stats[2, 3] = 0.7
    resources = {**loads.resources, LoadResource.MEMORY: dataclasses.replace(memory, stats=stats)}
    current = dataclasses.replace(nodes_snapshot({"cpu": [0.1]}), loads=dataclasses.replace(loads, resources=resources))
    _, document = answer_of(current, f'{METRIC}{{stat="max",resource="memory",window="5m"}}')
    assert document["data"]["result"][0]["value"][1] == "0.7"


@pytest.mark.parametrize(
    ("current", "message"),
    [
        (dataclasses.replace(nodes_snapshot({"cpu": [0.1]}), loads=None), "there is no data yet"),
        (nodes_snapshot({"cpu": [NAN, NAN]}), "there is no cpu avg over 15m of node-1, node-2: see"),
        (
            nodes_snapshot({"cpu": [0.9]}, load(LoadResource.CPU, [0.9], estimated=[0])),
            "there is no cpu avg over 15m of node-1",
        ),
        (
            nodes_snapshot({"memory": [0.1] * 5}),
            "there is no cpu avg over 15m of node-1, node-2, node-3 and 2 more: see",
        ),
        (nodes_snapshot({"cpu": []}), "no node is known"),
    ],
)
def test_without_any_measured_node_the_query_is_503(current: NodesSnapshot, message: str) -> None:
    status, document = answer_of(current)
    assert (status, document["status"], document["errorType"]) == (503, "error", "unavailable")
    assert document["error"].startswith(message)


@pytest.mark.parametrize(
    "current",
    [
        nodes_snapshot({"cpu": [0.1, NAN]}),
        nodes_snapshot({"cpu": [0.1, 1.0]}, load(LoadResource.CPU, [0.1, 1.0], estimated=[1])),
        dataclasses.replace(
            nodes_snapshot({"cpu": [0.1, 0.2]}), loads=snapshot(["node-1"], load(LoadResource.CPU, [0.1]))
        ),
    ],
    ids=["unknown", "estimated", "new"],
)
def test_a_node_that_is_not_measured_has_no_sample_and_the_others_have(current: NodesSnapshot) -> None:
    status, document = answer_of(current)
    assert status == 200
    assert [(one["metric"]["instance"], one["value"][1]) for one in document["data"]["result"]] == [("node-1", "0.1")]


def any_of(cpu: list[float], memory: list[float], settings: HotspotSettings | None = None) -> dict[str, str] | str:
    """Return the sample of each node for the resource `any`, or the message of an error."""
    loads = (load(LoadResource.CPU, cpu), load(LoadResource.MEMORY, memory))
    current = nodes_snapshot({"cpu": cpu, "memory": memory}, *loads)
    (route,) = query_routes(lambda: current, lambda: NOW, settings or HotspotSettings())
    response = route.handle(Request("GET", "/api/v1/query", query=urlencode({"query": ANY_QUERY})))
    document = json.loads(response.body)
    if response.status != 200:
        return str(document["error"])
    return {one["metric"]["instance"]: one["value"][1] for one in document["data"]["result"]}


def test_any_is_the_larger_of_cpu_and_memory_as_shares_of_their_limits() -> None:
    found = any_of([0.4, 0.2, 0.4, 0.81, 0.8], [0.09, 0.45, 0.9, 0.0, 0.3])
    assert found == {"node-1": "0.5", "node-2": "0.5", "node-3": "1.0", "node-4": "1.0", "node-5": "1.0"}


def test_any_follows_the_configured_limits() -> None:
    only_memory = HotspotSettings({LoadResource.MEMORY: 0.5, LoadResource.DISK: 0.1})
    assert any_of([0.9, NAN], [0.25, 0.3], only_memory) == {"node-1": "0.5", "node-2": "0.6"}
    assert any_of([0.9], [0.2], HotspotSettings({LoadResource.DISK: 0.1})) == (
        "resource any needs a limit of cpu or memory under hotspots in the scheduling configuration"
    )


def test_a_node_without_measured_cpu_or_memory_has_no_sample_of_any() -> None:
    """By one resource it might be below the limit and by the other hot, so it is neither relieved nor a destination."""
    assert any_of([0.9, NAN, 0.4], [NAN, 0.9, 0.0]) == {"node-3": "0.5"}
    assert str(any_of([NAN], [0.9])).startswith("there is no cpu and memory avg over 15m of node-1: see")


def test_old_data_is_503() -> None:
    status, document = answer_of(nodes_snapshot({"cpu": [0.1]}), now=WINDOW_END + 301)
    assert (status, document["errorType"]) == (503, "unavailable")


@pytest.mark.parametrize(
    ("time", "status"),
    [
        (str(NOW), 200),
        ("2023-11-14T22:28:20Z", 200),
        ("2023-11-14T23:28:20.5+01:00", 200),
        ("2023-11-14T20:28:20Z", 400),
        ("2023-11-14T22:28:20", 400),
        ("yesterday", 400),
        ("NaN", 400),
        ("1e400", 400),
        ("", 400),
    ],
)
def test_only_queries_for_the_present_are_accepted(time: str, status: int) -> None:
    assert answer_of(nodes_snapshot({"cpu": [0.1]}), time=time)[0] == status


def test_the_refusal_of_another_time_says_what_can_be_queried() -> None:
    _, document = answer_of(nodes_snapshot({"cpu": [0.1]}), time="2023-11-14T20:28:20Z")
    assert document["error"] == 'invalid parameter "time": only the current load can be queried here'


@pytest.mark.parametrize(
    "query",
    [
        "",
        "up",
        METRIC,
        f"{METRIC}{{}}",
        f'{METRIC}{{resource="cpu",window="15m"}}',
        f'{METRIC}{{resource="cpu",window="15m",stat="p99"}}',
        f'{METRIC}{{resource="cpu",window="2h",stat="avg"}}',
        f'{METRIC}{{resource="storage",window="15m",stat="avg"}}',
        f'{METRIC}{{resource="cpu",window="15m",stat=~"avg"}}',
        f'{METRIC}{{resource="cpu",window="15m",stat!="avg"}}',
        f'{METRIC}{{resource="cpu",resource="cpu",stat="avg"}}',
        f'{METRIC}{{resource="cpu",window="15m",stat="avg",node="a"}}',
        f'{METRIC}{{resource="cpu",window="15m",stat="avg"}}[5m]',
        f'{METRIC}{{resource="cpu",window="15m",stat="avg"}} * 2',
        f'avg({METRIC}{{resource="cpu",window="15m",stat="avg"}})',
        f"{METRIC}{{resource=cpu,window=15m,stat=avg}}",
        GOOD + " " * 1000,
    ],
)
def test_other_queries_are_refused_in_the_format_of_prometheus(query: str) -> None:
    status, document = answer_of(nodes_snapshot({"cpu": [0.1]}), query)
    assert (status, document["status"], document["errorType"]) == (400, "error", "bad_data")
    assert METRIC in document["error"] or "must be matched" in document["error"]


@pytest.mark.parametrize("body", [b"query=%zz", b"query=\xff", b"query=%ff", b"&".join([b"a=b"] * 50), b"\x00"])
def test_a_malformed_form_body_is_refused(body: bytes) -> None:
    (route,) = query_routes(lambda: nodes_snapshot({"cpu": [0.1]}), lambda: NOW, HotspotSettings())
    assert route.handle(Request("POST", "/api/v1/query", body=body)).status == 400


def test_the_query_parameter_of_the_url_takes_precedence_over_the_body() -> None:
    (route,) = query_routes(lambda: nodes_snapshot({"cpu": [0.1]}), lambda: NOW, HotspotSettings())
    request = Request("POST", "/api/v1/query", query=f"query={quote(GOOD)}", body=b"query=up")
    assert route.handle(request).status == 200


_SPACE = st.text(" \t\n", max_size=2)


@given(
    st.permutations(["resource", "window", "stat"]),
    st.sampled_from(list(LoadResource)),
    st.sampled_from(WINDOW_NAMES),
    st.sampled_from(STATS),
    st.data(),
)
def test_order_whitespace_and_quotes_of_matchers_do_not_matter(
    order: list[str], resource: LoadResource, window: str, stat: str, data: st.DataObject
) -> None:
    values = {"resource": str(resource), "window": window, "stat": stat}
    quotes = [data.draw(st.sampled_from("\"'")) for _ in order]
    gaps = [data.draw(_SPACE) for _ in range(8)]
    matchers = [
        f"{gap}{name}{gap}={gap}{mark}{values[name]}{mark}"
        for name, mark, gap in zip(order, quotes, gaps[:3], strict=True)
    ]
    comma = data.draw(st.sampled_from(["", ","]))
    found = parse_query(f"{gaps[3]}{METRIC}{gaps[4]}{{{','.join(matchers)}{gaps[5]}{comma}{gaps[6]}}}{gaps[7]}")
    assert (found.resource, WINDOW_NAMES[found.window], STATS[found.stat]) == (resource, window, stat)


@given(st.text(max_size=60) | st.text("{}=\"', avg15mcpu", max_size=60).map(lambda text: METRIC + text))
def test_no_other_text_is_accepted_as_an_expression(text: str) -> None:
    with pytest.raises(QueryExpressionError):
        parse_query(text)
