"""The stand-in refuses what kube-apiserver refuses: else the tests beside this one would prove nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from tests.support.fake_apiserver import TOKEN, FakeApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator

PODS = "/api/v1/pods"


class Caller:
    def __init__(self, server: FakeApiServer, pool: urllib3.PoolManager) -> None:
        self._url = server.url
        self._pool = pool

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, Any]]:
        given = {"Authorization": f"Bearer {TOKEN}", **headers}
        answer = self._pool.request(method, self._url + path, headers=given, retries=False, timeout=5.0)
        return answer.status, json.loads(answer.data) if answer.data.startswith(b"{") else {}

    def events(self, path: str) -> list[dict[str, Any]]:
        answer = self._pool.request("GET", self._url + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5.0)
        return [json.loads(line) for line in answer.data.splitlines()]


@pytest.fixture
def caller(server: FakeApiServer) -> Iterator[Caller]:
    with urllib3.PoolManager() as pool:
        yield Caller(server, pool)


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        (f"{PODS}?limits=5", {}, 400),
        (f"{PODS}?limit=many", {}, 400),
        (f"{PODS}?timeoutSeconds=5", {}, 400),
        (f"{PODS}?watch=yes", {}, 400),
        (f"{PODS}?watch=true&limit=5", {}, 400),
        (f"{PODS}?watch=true&resourceVersion=latest", {}, 400),
        (f"{PODS}?continue=nonsense", {}, 400),
        (f"{PODS}?resourceVersion=999999", {}, 504),
        ("/api/v1/widgets", {}, 404),
        ("/apis/shop.example/v1", {}, 404),
        (PODS, {"Accept": "application/vnd.kubernetes.protobuf"}, 406),
        (PODS, {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}, 406),
        (PODS, {"Authorization": "Bearer wrong"}, 401),
        (PODS, {"Authorization": ""}, 403),
    ],
)
def test_what_is_not_right_is_refused(caller: Caller, path: str, headers: dict[str, str], code: int) -> None:
    status, body = caller.ask(path, **headers)
    assert status == code
    assert body.get("code", code) == code


def test_verbs_other_than_get_are_refused(caller: Caller) -> None:
    assert caller.ask(PODS, method="DELETE")[0] == 405


def test_a_continue_token_must_come_alone_and_expires(server: FakeApiServer, caller: Caller) -> None:
    for name in "abc":
        server.put("pods", "shop", name)
    _, page = caller.ask(f"{PODS}?limit=2")
    token = page["metadata"]["continue"]
    server.put("pods", "shop", "later")
    assert caller.ask(f"{PODS}?limit=2&continue={token}&resourceVersion=1")[0] == 400
    _, rest = caller.ask(f"{PODS}?limit=2&continue={token}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
    server.compact()
    assert caller.ask(f"{PODS}?limit=2&continue={token}")[0] == 410


def test_with_version_0_the_limit_is_ignored(server: FakeApiServer, caller: Caller) -> None:
    for name in "abc":
        server.put("pods", "shop", name)
    assert len(caller.ask(f"{PODS}?limit=1&resourceVersion=0")[1]["items"]) == 3


def test_a_watch_tells_what_came_after_its_version_and_ends_on_time(server: FakeApiServer, caller: Caller) -> None:
    server.put("pods", "shop", "before")
    version = server.store.version
    server.put("pods", "shop", "after")
    server.put("services", "shop", "of-another-kind")
    server.remove("pods", "shop", "before")
    server.bookmark_seconds = 0.1
    told = caller.events(f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=1")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in told] == [
        ("ADDED", "after"),
        ("DELETED", "before"),
    ]


def test_bookmarks_come_when_they_are_asked_for(server: FakeApiServer, caller: Caller) -> None:
    server.bookmark_seconds = 0.1
    told = caller.events(f"{PODS}?watch=true&resourceVersion=1000&timeoutSeconds=1&allowWatchBookmarks=true")
    assert {event["type"] for event in told} == {"BOOKMARK"}


def test_a_watch_from_a_compacted_version_is_refused_by_an_event(server: FakeApiServer, caller: Caller) -> None:
    server.put("pods", "shop", "a")
    server.compact()
    told = caller.events(f"{PODS}?watch=true&resourceVersion=1000&timeoutSeconds=5")
    assert [(event["type"], event["object"]["code"]) for event in told] == [("ERROR", 410)]
