"""Requests to an API server, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import (
    AdmissionError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    SilentError,
    StatusError,
    ThrottledError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnreachableError,
    error_of_answer,
    is_of_the_server,
)
from adapter.foundation.sources.kubernetes.transport import PlainAccess, PlainTransport, TlsError
from tests.adapter.foundation.sources.kubernetes.client_documents import PODS, kind_of
from tests.support.caller import PATIENCE_SECONDS
from tests.support.fake_apiserver import TOKEN, FakeApiServer, Fault
from tests.support.raw_server import Peer, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_get_is_sent_with_the_token_and_the_user_agent(server: FakeApiServer, client: KubernetesClient) -> None:
    assert kind_of(client.get(PODS, {"limit": "5"})) == "PodList"
    request = server.requests[0]
    assert request.query == {"limit": "5"}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["User-Agent"] == "tidewatch"


def test_values_of_parameters_are_escaped(server: FakeApiServer, client: KubernetesClient) -> None:
    with pytest.raises(StatusError, match="continue key is not valid"):
        client.get(PODS, {"continue": "a&limit=5 +=/"})
    assert server.requests[0].query == {"continue": "a&limit=5 +=/"}


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, StatusError),
        (401, UnauthorizedError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (410, ExpiredError),
        (429, ThrottledError),
        (500, ServerError),
        (503, ServerError),
    ],
)
def test_each_status_has_its_error_class(
    server: FakeApiServer, client: KubernetesClient, code: int, error: type[StatusError]
) -> None:
    server.faults.append(Fault("list", "status", code=code, headers={"Retry-After": "3"}, times=2))
    with pytest.raises(StatusError, match=rf"^GET /api/v1/pods: {code} Scripted: this failure was asked") as raised:
        client.get(PODS)
    assert type(raised.value) is error
    assert (raised.value.code, raised.value.retry_after_seconds) == (code, 3.0)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ('deployments.apps "web" is forbidden: User "a" cannot update resource "deployments/scale"', ForbiddenError),
        ('nodes is forbidden: User "a" cannot list resource "nodes": a policy denied the request', ForbiddenError),
        ('admission webhook "a.example.com" denied the request: not on Fridays', AdmissionError),
        ("web is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: c", AdmissionError),
        ('configmaps "m" is forbidden: exceeded quota: q, requested: count/configmaps=1', AdmissionError),
        ("unable to create new content in namespace shop because it is being terminated", AdmissionError),
    ],
)
def test_a_write_that_is_not_admitted_does_not_lack_a_right(message: str, error: type[StatusError]) -> None:
    body = json.dumps({"kind": "Status", "message": message, "reason": "Forbidden", "code": 403}).encode()
    found = error_of_answer("PUT /", 403, body)
    assert type(found) is error
    assert not is_of_the_server(found)


@pytest.mark.parametrize("retry_after", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "", "³"])
def test_a_retry_after_that_is_not_a_number_of_seconds_is_ignored(retry_after: str) -> None:
    assert error_of_answer("GET /", 429, b"{}", retry_after).retry_after_seconds == 0.0


def test_a_foreign_message_is_shortened_to_one_line() -> None:
    error = error_of_answer("GET /", 502, b"<html>\n<h1>Bad\tgateway</h1>" + b"x" * 5000)
    assert str(error).startswith("GET /: 502: <html> <h1>Bad gateway</h1>xxx")
    assert len(str(error)) < 300
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("no upstream for Authorization: Bearer {token}", "no upstream for Authorization: Bearer …"),
        ('{"kind": "Status", "message": "unknown: {token}", "reason": "Invalid"}', "Invalid: unknown: …"),
        ("x" * 250 + "{token}", "x" * 250 + "…"),
    ],
)
def test_a_token_repeated_by_a_proxy_is_hidden_in_the_error(body: str, shown: str) -> None:
    def repeats(peer: Peer) -> None:
        while (request := peer.read()) is not None:
            token = request.headers["authorization"].removeprefix("Bearer ")
            peer.answer(body.replace("{token}", token).encode(), "502 Bad Gateway")

    with raw_server(repeats) as proxy:
        client = client_with_token(proxy.url)
        with pytest.raises(StatusError) as raised:
            client.get(PODS)
    assert str(raised.value).endswith(shown)


def test_a_token_repeated_in_a_success_is_hidden() -> None:
    def repeats(peer: Peer) -> None:
        peer.read()
        peer.answer(f'{{"sent": "{TOKEN}"}}'.encode())

    with raw_server(repeats) as proxy:
        assert client_with_token(proxy.url).get(PODS) == '{"sent": "…"}'.encode()


def client_with_token(url: str) -> KubernetesClient:
    access = PlainAccess(host=url, token=lambda: f"Bearer {TOKEN}")
    return KubernetesClient(lambda: PlainTransport(access))


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get(PODS),
        lambda client: client.send("POST", PODS, {}, seconds=PATIENCE_SECONDS),
    ],
    ids=["read", "write"],
)
def test_an_answer_that_follows_an_interim_one_is_never_that_of_the_next_request(
    ask: Callable[[KubernetesClient], bytes],
) -> None:
    def script(peer: Peer) -> None:
        peer.read()
        if peer.number == 0:
            peer.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            # The answer to the first request is ready only when the next one has been sent.
            peer.read()
            peer.answer(b"first")
        else:
            peer.answer(b"second")

    with raw_server(script) as proxy:
        client = client_with_token(proxy.url)
        with pytest.raises(StatusError, match="103"):
            ask(client)
        assert ask(client) == b"second"


def test_a_failed_request_is_not_repeated(server: FakeApiServer, client: KubernetesClient) -> None:
    server.faults.append(Fault("list", "status", code=503, headers={"Retry-After": "1"}, times=9))
    with pytest.raises(ServerError):
        client.get(PODS)
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: FakeApiServer, client: KubernetesClient) -> None:
    server.faults.append(Fault("list", "status", code=302, headers={"Location": f"{server.url}/api/v1/nodes"}))
    with pytest.raises(StatusError, match="302"):
        client.get(PODS)
    assert len(server.requests) == 1


@pytest.mark.parametrize("what", ["hang", "silence"])
def test_a_request_to_a_silent_server_times_out(server: FakeApiServer, client: KubernetesClient, what: str) -> None:
    server.faults.append(Fault("list", what))  # type: ignore[arg-type]  # one of the table's two
    with pytest.raises(SilentError, match=r"^GET /api/v1/pods: no answer in time$"):
        client.get(PODS)


def test_an_answer_that_trickles_times_out(server: FakeApiServer, tmp_path: Path) -> None:
    server.bookmark_seconds = 0.05
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    kubeconfig = server.kubeconfig(tmp_path / "config")
    client = KubernetesClient(from_kubeconfig(str(kubeconfig)), RequestDeadlines(total=3.0), clock=clock)
    with pytest.raises(UnreachableError, match="did not end within 3 s"):
        client.get(PODS, {"watch": "true", "allowWatchBookmarks": "true"})


def test_an_unreachable_server_is_an_error(server: FakeApiServer, client: KubernetesClient) -> None:
    server.stop()
    with pytest.raises(UnreachableError, match=r"^GET /api/v1/pods: cannot connect: .*refused$"):
        client.get(PODS)


def test_a_cancelled_answer_ends(server: FakeApiServer, client: KubernetesClient) -> None:
    server.put("pods", "shop", "a")
    with client.open(PODS, {"watch": "true"}) as answer:
        pieces = answer.pieces(60.0)
        assert b'"a"' in next(pieces)
        answer.cancel()
        assert list(pieces) == []
    answer.cancel()


def test_a_partly_read_answer_does_not_affect_the_next(server: FakeApiServer, client: KubernetesClient) -> None:
    for number in range(200):
        server.put("pods", "shop", f"a-{number}")
    with client.open(PODS) as answer:
        next(answer.pieces(5.0))
    assert kind_of(client.get(PODS, {"limit": "1"})) == "PodList"


def test_the_models_of_the_package_are_never_loaded(server: FakeApiServer, tmp_path: Path) -> None:
    program = f"""
import sys
import adapter.foundation.sources.kubernetes.watches.cluster, adapter.foundation.sources.object_folder
assert "kubernetes" not in sys.modules
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
client = KubernetesClient(from_kubeconfig({str(server.kubeconfig(tmp_path / "config"))!r}))
KindDiscovery(client).refresh()
client.get("/api/v1/pods")
heavy = [name for name in sys.modules if name.startswith(("kubernetes.client.models.", "kubernetes.client.api.core"))]
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_each_request_waits_for_its_turn_and_is_not_sent_without_one(server: FakeApiServer, tmp_path: Path) -> None:
    turns: list[float] = []

    def may_ask(seconds: float) -> bool:
        turns.append(seconds)
        return len(turns) < 3

    connect = from_kubeconfig(str(server.kubeconfig(tmp_path / "config")))
    client = KubernetesClient(connect, RequestDeadlines(silence=7.0), may_ask=may_ask)
    for _ in range(2):
        client.get(PODS)
    with pytest.raises(UnreachableError, match=r"^GET /api/v1/pods: not sent: .*--client-qps"):
        client.get(PODS)
    assert turns == [7.0] * 3
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("3", 3.0), ("32", 32.0), ("300", 32.0), ("9" * 400, 32.0), ("soon", 0.0)]
)
def test_retry_after_is_bounded(retry_after: str, seconds: float) -> None:
    assert error_of_answer("GET /api", 429, b"", retry_after).retry_after_seconds == seconds


def test_an_endless_answer_is_an_error(server: FakeApiServer, client: KubernetesClient) -> None:
    server.faults.append(Fault("list", "garbage", body=b"x" * 2_000_000))
    with client.open("/api/v1/pods") as answer, pytest.raises(UnexpectedResponseError, match="larger than 1 MiB"):
        answer.whole(10.0, 1 << 20)


@pytest.mark.parametrize("key", ["", "disable-compression: true\n    "], ids=["own transport", "of the package"])
def test_the_error_for_a_port_without_tls_says_so(server: FakeApiServer, tmp_path: Path, key: str) -> None:
    config = server.kubeconfig(tmp_path / "kubeconfig")
    config.write_text(config.read_text().replace("server: http://", f"{key}server: https://"))
    with pytest.raises(UnreachableError) as refused:
        KubernetesClient(from_kubeconfig(str(config))).get(PODS)
    assert str(refused.value) == f"GET {PODS}: TLS: this port does not speak TLS"


@pytest.mark.parametrize(
    ("openssl", "words"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)",
            "certificate verify failed: certificate has expired",
        ),
        ("SSLError\n[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca (_ssl.c:2580)", "tlsv1 alert unknown ca"),
        ("SSLError\n[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "this port does not speak TLS"),
        ("[SSL] record layer failure (_ssl.c:1000)", "this port does not speak TLS"),
        ("Can't connect", "Can't connect"),
    ],
)
def test_the_codes_of_openssl_are_left_out(openssl: str, words: str) -> None:
    assert str(TlsError(openssl)) == words
