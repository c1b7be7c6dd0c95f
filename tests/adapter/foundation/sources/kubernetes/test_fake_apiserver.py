"""The stand-in refuses what kube-apiserver refuses; otherwise the tests of this folder would prove nothing."""

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

    def request(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, Any]]:
        given = {"Authorization": f"Bearer {TOKEN}", **headers}
        answer = self._pool.request(method, self._url + path, headers=given, retries=False, timeout=5.0)
        return answer.status, json.loads(answer.data) if answer.data.startswith(b"{") else {}

    def post(self, path: str, document: object, **headers: str) -> tuple[int, dict[str, Any]]:
        given = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            **headers,
        }
        body = json.dumps(document)
        answer = self._pool.request("POST", self._url + path, body=body, headers=given, retries=False, timeout=5.0)
        return answer.status, json.loads(answer.data)

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
def test_an_invalid_request_is_refused(caller: Caller, path: str, headers: dict[str, str], code: int) -> None:
    status, body = caller.request(path, **headers)
    assert status == code
    assert body.get("code", code) == code


TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
RIGHTS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKEN_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}}
PATH_RIGHT = {"path": "/metrics", "verb": "get"}


def right(**spec: object) -> dict[str, object]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "a"} | spec}


@pytest.mark.parametrize(
    ("path", "document", "code"),
    [
        (TOKENS, TOKEN_REVIEW, 201),
        (TOKENS, TOKEN_REVIEW | {"kind": "SubjectAccessReview"}, 400),
        (TOKENS, TOKEN_REVIEW | {"apiVersion": "authentication.k8s.io/v1beta1"}, 400),
        (TOKENS, TOKEN_REVIEW | {"spec": {}}, 400),
        (TOKENS, TOKEN_REVIEW | {"spec": {"token": "t", "audience": ["a"]}}, 400),
        (TOKENS, TOKEN_REVIEW | {"metadata": {"name": "a"}}, 422),
        (TOKENS, [], 400),
        (RIGHTS, right(nonResourceAttributes=PATH_RIGHT), 201),
        (RIGHTS, right(resourceAttributes={"verb": "get", "resource": "pods"}), 201),
        (RIGHTS, right(), 422),
        (RIGHTS, right(nonResourceAttributes=PATH_RIGHT, resourceAttributes={"verb": "get"}), 422),
        (RIGHTS, right(user="", nonResourceAttributes=PATH_RIGHT), 422),
        (RIGHTS, right(groups="a", nonResourceAttributes=PATH_RIGHT), 400),
        (RIGHTS, right(resourceAttributes={"verb": "get", "subResource": "m"}), 400),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", right(), 405),
    ],
)
def test_a_review_is_answered_only_if_it_is_valid(caller: Caller, path: str, document: object, code: int) -> None:
    assert caller.post(path, document)[0] == code


def test_a_review_needs_json_and_a_valid_token(caller: Caller) -> None:
    assert caller.post(TOKENS, TOKEN_REVIEW, **{"Content-Type": "application/yaml"})[0] == 415
    assert caller.post(TOKENS, TOKEN_REVIEW, Accept="application/vnd.kubernetes.protobuf")[0] == 406
    assert caller.post(TOKENS, TOKEN_REVIEW, Authorization="Bearer wrong")[0] == 401
    assert caller.post(TOKENS, TOKEN_REVIEW, Authorization="")[0] == 403


def test_only_one_config_map_may_be_read(server: FakeApiServer, caller: Caller) -> None:
    name = "extension-apiserver-authentication"
    server.put_config_map("kube-system", name, {"a": "b"})
    server.put_config_map("kube-system", "another", {"c": "d"})
    path = "/api/v1/namespaces/kube-system/configmaps"
    assert caller.request(path)[0] == 403
    assert caller.request(f"{path}?fieldSelector=metadata.name=another")[0] == 403
    assert caller.request(f"{path}?fieldSelector=data.a=b")[0] == 400
    _, found = caller.request(f"{path}?fieldSelector=metadata.name={name}")
    assert [item["data"] for item in found["items"]] == [{"a": "b"}]


def test_verbs_other_than_get_are_refused(caller: Caller) -> None:
    assert caller.request(PODS, method="DELETE")[0] == 405


def test_a_continue_token_must_come_alone_and_expires(server: FakeApiServer, caller: Caller) -> None:
    for name in "abc":
        server.put("pods", "shop", name)
    _, page = caller.request(f"{PODS}?limit=2")
    token = page["metadata"]["continue"]
    server.put("pods", "shop", "later")
    assert caller.request(f"{PODS}?limit=2&continue={token}&resourceVersion=1")[0] == 400
    _, rest = caller.request(f"{PODS}?limit=2&continue={token}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
    server.compact()
    assert caller.request(f"{PODS}?limit=2&continue={token}")[0] == 410


def test_with_version_0_the_limit_is_ignored(server: FakeApiServer, caller: Caller) -> None:
    for name in "abc":
        server.put("pods", "shop", name)
    assert len(caller.request(f"{PODS}?limit=1&resourceVersion=0")[1]["items"]) == 3


def test_a_watch_reports_changes_after_its_version_and_ends_on_time(server: FakeApiServer, caller: Caller) -> None:
    server.put("pods", "shop", "before")
    version = server.store.version
    server.put("pods", "shop", "after")
    server.put("services", "shop", "of-another-kind")
    server.remove("pods", "shop", "before")
    server.bookmark_seconds = 0.1
    events = caller.events(f"{PODS}?watch=true&resourceVersion={version}&timeoutSeconds=1")
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "after"),
        ("DELETED", "before"),
    ]


def test_bookmarks_are_sent_if_requested(server: FakeApiServer, caller: Caller) -> None:
    server.bookmark_seconds = 0.1
    events = caller.events(f"{PODS}?watch=true&resourceVersion=1000&timeoutSeconds=1&allowWatchBookmarks=true")
    assert {event["type"] for event in events} == {"BOOKMARK"}


def test_a_watch_from_a_compacted_version_is_refused_by_an_event(server: FakeApiServer, caller: Caller) -> None:
    server.put("pods", "shop", "a")
    server.compact()
    events = caller.events(f"{PODS}?watch=true&resourceVersion=1000&timeoutSeconds=5")
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]
