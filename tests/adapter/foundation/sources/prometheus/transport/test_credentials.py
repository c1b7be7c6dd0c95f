"""Tokens, passwords and certificates, and how their files are followed, against servers that require them."""

from __future__ import annotations

import base64
import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    PrometheusUnreachableError,
    SettingsError,
)
from adapter.foundation.sources.prometheus.prometheus_settings import Access, AccessFiles, PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.sources.prometheus.transport.credentials import (
    AwaitedCredentials,
    Credentials,
    follow_credentials,
)
from adapter.foundation.time.pace import UNPACED
from demo.machine.certificates import Authority, KeyPair
from tests.support.raw_server import answering, raw_server

ONE = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}'


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def replace_file(path: Path, content: str) -> None:
    """Replace a file as Kubernetes does: another file gets the same name."""
    new = path.with_suffix(".new")
    new.write_text(content)
    new.rename(path)


def authorization(settings: PrometheusSettings, clock: Clock | None = None) -> str | None:
    return Credentials(settings, clock or Clock()).headers().get("Authorization")


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_awaited_credentials_are_looked_for_once_a_second_until_they_can_be_read(tmp_path: Path, clock: Clock) -> None:
    token = tmp_path / "token"
    credentials = AwaitedCredentials(PrometheusSettings("http://host", token_file=token), clock)
    with pytest.raises(SettingsError, match="No such file"):
        credentials.headers()
    token.write_text("good")
    clock.now += 0.9
    with pytest.raises(SettingsError, match="No such file"):
        credentials.headers()
    clock.now += 0.1
    assert credentials.headers() == {"Authorization": "Bearer good"}
    assert credentials.tls() is None


def test_a_changed_token_is_used_a_second_later(tmp_path: Path, clock: Clock) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    credentials = Credentials(PrometheusSettings("http://host", token_file=token), clock)
    assert credentials.headers() == {"Authorization": "Bearer one"}
    replace_file(token, "two")
    assert credentials.headers() == {"Authorization": "Bearer one"}
    clock.now += 1
    assert credentials.headers() == {"Authorization": "Bearer two"}


def test_a_new_token_file_of_the_same_length_and_age_is_noticed(tmp_path: Path, clock: Clock) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    old = token.stat()
    credentials = Credentials(PrometheusSettings("http://host", token_file=token), clock)
    replace_file(token, "two")
    os.utime(token, ns=(old.st_atime_ns, old.st_mtime_ns))
    clock.now += 1
    assert credentials.headers() == {"Authorization": "Bearer two"}


@pytest.mark.parametrize("content", ["", " \n", "two\nlines", None])
def test_the_last_good_token_stays_and_the_reason_is_logged_once(
    tmp_path: Path, clock: Clock, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    credentials = Credentials(PrometheusSettings("http://host", token_file=token), clock)
    if content is None:
        token.unlink()
    else:
        replace_file(token, content)
    for _ in range(3):
        clock.now += 1
        assert credentials.headers() == {"Authorization": "Bearer secret"}
    (message,) = caplog.messages
    assert "token file" in message
    assert str(token) in message
    assert "secret" not in message
    replace_file(token, "three")
    clock.now += 1
    assert credentials.headers() == {"Authorization": "Bearer three"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), (b"", "it is empty"), (b"a\nb", "more than one line"), (b"\xff", "not UTF-8")],
)
def test_a_token_that_cannot_be_used_at_the_start_is_refused(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    with pytest.raises(SettingsError, match=f"token file .*{reason}"):
        Credentials(PrometheusSettings("http://host", token_file=token))


def test_user_and_password_are_read_from_every_source(tmp_path: Path, clock: Clock) -> None:
    password = tmp_path / "password"
    password.write_text("pass wörd\n")
    assert authorization(PrometheusSettings("http://host", username="u", password="p")) == basic("u:p")
    assert authorization(PrometheusSettings("http://u:p%20q@host")) == basic("u:p q")
    assert authorization(PrometheusSettings("http://host", username="u")) == basic("u:")
    settings = PrometheusSettings("http://host", username="u", password_file=password)
    credentials = Credentials(settings, clock)
    assert credentials.headers() == {"Authorization": basic("u:pass wörd")}
    replace_file(password, "new")
    clock.now += 1
    assert credentials.headers() == {"Authorization": basic("u:new")}


def test_every_request_carries_the_headers_and_the_parameters_of_the_url(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc")
    headers = (("X-Scope-OrgID", "team-a"), ("X-Key", "k"))
    with raw_server(answering(ONE)) as server:
        for verb in ("POST", "GET"):
            settings = PrometheusSettings(
                f"{server.url}/prefix/?tenant=a%26b&empty=", verb=verb, headers=headers, token_file=token
            )
            with PrometheusClient(settings, clock=lambda: 1234.9) as client:
                client.instant("a & b", timeout_seconds=2.5)
        post, get = server.requests
    assert (post.method, post.target) == ("POST", "/prefix/api/v1/query?tenant=a%26b&empty=")
    assert post.body == b"query=a+%26+b&time=1234&timeout=2.500"
    assert post.headers["content-type"] == "application/x-www-form-urlencoded"
    assert (get.method, get.body) == ("GET", b"")
    assert get.target == "/prefix/api/v1/query?tenant=a%26b&empty=&query=a+%26+b&time=1234&timeout=2.500"
    for request in (post, get):
        assert request.headers["authorization"] == "Bearer abc"
        assert request.headers["x-scope-orgid"] == "team-a"
        assert request.headers["x-key"] == "k"
        assert request.headers["accept-encoding"] == "identity"


def test_series_are_requested_with_their_limit() -> None:
    with raw_server(
        answering(b'{"status":"success","data":[],"warnings":["results truncated due to limit"]}')
    ) as server:
        with PrometheusClient(PrometheusSettings(server.url)) as client:
            for _ in client.series('up{a="b"}', start=1.5, timeout_seconds=2).batches(UNPACED):
                pass
            answer = client.series("up", start=1_700_000_000, timeout_seconds=2, limit=10)
            assert list(answer.batches(UNPACED)) == []
        assert answer.warnings == ("results truncated due to limit",)
        assert [request.target for request in server.requests] == ["/api/v1/series"] * 2
        assert server.requests[0].body == b"match%5B%5D=up%7Ba%3D%22b%22%7D&start=1.5&limit=1000000"
        assert server.requests[1].body == b"match%5B%5D=up&start=1700000000&limit=10"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca", "ca of prometheus")


def server_context(pair: KeyPair, client_ca: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


def values(url: str, **options: Any) -> list[float]:  # noqa: ANN401 - settings of any type
    with PrometheusClient(PrometheusSettings(url, **options)) as client:
        answer = client.instant("up", timeout_seconds=10)
        return [sample.value for batch in answer.batches(UNPACED) for sample in batch]


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x16\x03\x01\xff\xff".ljust(100)], ids=["http", "a length"]
)
def test_the_error_for_a_server_without_tls_says_so(said: bytes) -> None:
    with raw_server(lambda peer: peer.send(said)) as server:
        plain = server.url.replace("http://", "https://")
        with pytest.raises(
            PrometheusUnreachableError, match=r"TLS handshake .* failed: it does not speak TLS: write http"
        ):
            values(plain)


def test_the_server_is_verified_by_the_given_authority(authority: Authority, tmp_path: Path) -> None:
    pair = authority.server()
    other = Authority(tmp_path / "other").server()
    with raw_server(answering(ONE), server_context(pair)) as server:
        assert values(server.url, ca_file=pair.ca_file) == [1.0]
        with pytest.raises(PrometheusUnreachableError, match=r"TLS handshake .*certificate is not accepted: .*issuer"):
            values(server.url, ca_file=other.ca_file)
        with pytest.raises(PrometheusUnreachableError, match="certificate is not accepted"):
            values(server.url)


def test_one_connection_serves_many_requests_over_tls(authority: Authority) -> None:
    pair = authority.server()
    with raw_server(answering(ONE), server_context(pair)) as server:
        with PrometheusClient(PrometheusSettings(server.url, ca_file=pair.ca_file)) as client:
            for _ in range(5):
                client.instant("up", timeout_seconds=10)
        assert server.connections == 1


def test_the_name_of_the_server_is_verified(authority: Authority) -> None:
    pair = authority.server(["prometheus.example.com"], ["127.0.0.2"])
    with (
        raw_server(answering(ONE), server_context(pair)) as server,
        pytest.raises(PrometheusUnreachableError, match="certificate is not accepted: IP address mismatch"),
    ):
        values(server.url, ca_file=pair.ca_file)


def test_a_client_certificate_is_presented(authority: Authority, tmp_path: Path) -> None:
    pair = authority.server()
    client = authority.client("tidewatch")
    other = Authority(tmp_path / "other").client("tidewatch")
    with raw_server(answering(ONE), server_context(pair, pair.ca_file)) as server:
        shown = {"client_cert_file": client.certificate_file, "client_key_file": client.key_file}
        assert values(server.url, ca_file=pair.ca_file, **shown) == [1.0]
        unknown = {"client_cert_file": other.certificate_file, "client_key_file": other.key_file}
        for wrong, words in (
            ({}, "it requires a client certificate"),
            (unknown, "it does not accept this program's client certificate: unknown ca"),
        ):
            with pytest.raises(PrometheusUnreachableError, match=words):
                values(server.url, ca_file=pair.ca_file, **wrong)


def test_the_error_for_a_client_certificate_refused_in_the_handshake_says_so(
    authority: Authority, tmp_path: Path
) -> None:
    pair, other = authority.server(), Authority(tmp_path / "other").client("tidewatch")
    context = server_context(pair, pair.ca_file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        raw_server(answering(ONE), context) as server,
        pytest.raises(
            PrometheusUnreachableError, match="does not accept this program's client certificate: unknown ca"
        ),
    ):
        values(
            server.url,
            ca_file=pair.ca_file,
            client_cert_file=other.certificate_file,
            client_key_file=other.key_file,
        )


def test_a_key_that_does_not_fit_is_refused_at_the_start(authority: Authority) -> None:
    one, two = authority.client("one"), authority.client("two")
    with pytest.raises(SettingsError, match="TLS files"):
        Credentials(
            PrometheusSettings("https://host", client_cert_file=one.certificate_file, client_key_file=two.key_file)
        )


def test_new_certificates_are_used_and_half_changed_ones_are_not(
    authority: Authority, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = authority.client("one"), authority.client("two")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_text(one.certificate_file.read_text())
    key.write_text(one.key_file.read_text())
    settings = PrometheusSettings("https://host", client_cert_file=certificate, client_key_file=key)
    credentials = Credentials(settings, clock)
    first = credentials.tls()
    clock.now += 1
    assert credentials.tls() is first
    replace_file(certificate, two.certificate_file.read_text())
    clock.now += 1
    assert credentials.tls() is first
    assert len(caplog.messages) == 1
    replace_file(key, two.key_file.read_text())
    clock.now += 1
    assert credentials.tls() is not first
    assert len(caplog.messages) == 1


def test_without_tls_there_is_no_context() -> None:
    assert Credentials(PrometheusSettings("http://host")).tls() is None


def test_refused_credentials_do_not_appear_in_the_error(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hidden-token")
    with (
        raw_server(answering(b"Unauthorized", "401 Unauthorized")) as server,
        pytest.raises(AuthenticationRefusedError) as caught,
    ):
        values(server.url, token_file=token)
    assert "hidden-token" not in f"{caught.value!r} {caught.value}"


def test_described_access_is_read_again_with_its_files_and_the_last_good_one_stays(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    description, first, second = tmp_path / "description", tmp_path / "first", tmp_path / "second"
    description.write_text(str(first))
    first.write_text("one")
    second.write_text("two")

    def read() -> Access:
        return Access(token_file=Path(description.read_text()), headers=(("X-Key", "k"),))

    settings = PrometheusSettings(
        "http://host", headers=(("X-Other", "o"),), access_files=AccessFiles((description,), read)
    )
    credentials = Credentials(settings, clock)
    assert credentials.headers() == {"X-Key": "k", "X-Other": "o", "Authorization": "Bearer one"}
    for content in (str(tmp_path / "none"), str(second)):
        replace_file(description, content)
        clock.now += 1
        expected = "two" if content == str(second) else "one"
        assert credentials.headers()["Authorization"] == f"Bearer {expected}"
    replace_file(second, "three")
    clock.now += 1
    assert credentials.headers()["Authorization"] == "Bearer three"
    assert len([message for message in caplog.messages if "cannot be used" in message]) == 1
    with pytest.raises(SettingsError, match="more than one way"):
        Credentials(PrometheusSettings("http://u:p@host", access_files=settings.access_files))


def test_files_are_checked_at_most_once_a_second(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "file"
    path.write_text("0")
    loads: list[int] = []
    files = follow_credentials("file", (path,), lambda: loads.append(1), clock)
    for i in range(10):
        replace_file(path, str(i))
        clock.now += 0.25
        files.current()
    assert len(loads) == 3
