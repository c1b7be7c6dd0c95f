from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.hotspots.query import query_routes
from adapter.nodes.hotspots.selector import METRIC, QueryExpressionError, parse_query
from adapter.nodes.model.loads import STATS, WINDOW_NAMES, LoadResource
from adapter.web.http import Request
from tests.nodes.extender.boards import NAN, WINDOW_END, board, load, snapshot

if TYPE_CHECKING:
    from adapter.nodes.model.board import Board

GOOD = f'{METRIC}{{resource="cpu",window="15m",stat="avg"}}'
NOW = WINDOW_END + 20


def asked(current: Board, query: str = GOOD, *, now: float = NOW, method: str = "GET", **more: str) -> tuple[int, Any]:
    """Return status and document."""
    (route,) = query_routes(lambda: current, lambda: now)
    fields = urlencode({"query": query, **more})
    in_target, in_body = (fields, b"") if method == "GET" else ("", fields.encode())
    response = route.handle(Request(method, "/api/v1/query", query=in_target, body=in_body))
    return response.status, json.loads(response.body)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_node_has_a_sample_as_the_descheduler_wants_it(method: str) -> None:
    assert asked(board({"cpu": [0.53, 0.0, 1.0]}), method=method, time=str(NOW)) == (
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
    _, document = asked(board({"cpu": [1.3, -0.1]}))
    assert [sample["value"][1] for sample in document["data"]["result"]] == ["1.0", "0.0"]


def test_the_number_that_was_asked_for_is_answered() -> None:
    loads = snapshot(["node-1"], load(LoadResource.CPU, [0.1]), load(LoadResource.MEMORY, [0.2]))
    memory = loads.resources[LoadResource.MEMORY]
    stats = memory.stats.copy()
    stats[2, 3] = 0.7
    resources = {**loads.resources, LoadResource.MEMORY: dataclasses.replace(memory, stats=stats)}
    current = dataclasses.replace(board({"cpu": [0.1]}), loads=dataclasses.replace(loads, resources=resources))
    _, document = asked(current, f'{METRIC}{{stat="max",resource="memory",window="5m"}}')
    assert document["data"]["result"][0]["value"][1] == "0.7"


@pytest.mark.parametrize(
    ("current", "message"),
    [
        (dataclasses.replace(board({"cpu": [0.1]}), loads=None), "there is no data yet"),
        (board({"cpu": [0.1, NAN]}), "there is no cpu avg over 15m of node-2: see"),
        (board({"memory": [0.1] * 5}), "there is no cpu avg over 15m of node-1, node-2, node-3 and 2 more: see"),
        (board({"cpu": []}), "no node is known"),
        (
            dataclasses.replace(board({"cpu": [0.1, 0.2]}), loads=snapshot(["node-1"], load(LoadResource.CPU, [0.1]))),
            "there is no cpu avg over 15m of node-2: see",
        ),
    ],
)
def test_half_a_picture_is_no_picture(current: Board, message: str) -> None:
    status, document = asked(current)
    assert (status, document["status"], document["errorType"]) == (503, "error", "unavailable")
    assert document["error"].startswith(message)


def test_old_data_are_not_the_present() -> None:
    status, document = asked(board({"cpu": [0.1]}), now=WINDOW_END + 301)
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
def test_only_the_present_can_be_asked_for(time: str, status: int) -> None:
    assert asked(board({"cpu": [0.1]}), time=time)[0] == status


@pytest.mark.parametrize(
    "query",
    [
        "",
        "up",
        METRIC,
        f"{METRIC}{{}}",
        f'{METRIC}{{resource="cpu",window="15m"}}',
        f'{METRIC}{{resource="cpu",window="15m",stat="p99"}}',
        f'{METRIC}{{resource="cpu",window="1h",stat="avg"}}',
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
def test_anything_else_is_refused_as_prometheus_refuses_it(query: str) -> None:
    status, document = asked(board({"cpu": [0.1]}), query)
    assert (status, document["status"], document["errorType"]) == (400, "error", "bad_data")
    assert METRIC in document["error"] or "must be matched" in document["error"]


@pytest.mark.parametrize("body", [b"query=%zz", b"query=\xff", b"query=%ff", b"&".join([b"a=b"] * 50), b"\x00"])
def test_a_broken_form_is_refused(body: bytes) -> None:
    (route,) = query_routes(lambda: board({"cpu": [0.1]}), lambda: NOW)
    assert route.handle(Request("POST", "/api/v1/query", body=body)).status == 400


def test_the_parameter_of_the_target_comes_first() -> None:
    (route,) = query_routes(lambda: board({"cpu": [0.1]}), lambda: NOW)
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
def test_order_space_and_quotes_do_not_matter(
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
def test_no_other_text_is_an_expression(text: str) -> None:
    with pytest.raises(QueryExpressionError):
        parse_query(text)
