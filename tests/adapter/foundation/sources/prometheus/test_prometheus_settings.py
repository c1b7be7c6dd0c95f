"""Settings that cannot work are refused with the reason, and never shown with their secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings, endpoint_of


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://prometheus", "http://prometheus:80"),
        ("https://prometheus", "https://prometheus:443"),
        ("http://prometheus:9090/", "http://prometheus:9090"),
        ("HTTP://Prometheus:9090/a/b/", "http://prometheus:9090/a/b"),
        ("http://[::1]:9090/x", "http://[::1]:9090/x"),
        ("https://thanos/?dedup=false", "https://thanos:443"),
        (
            "https://cluster/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/",
            "https://cluster:443/api/v1/namespaces/monitoring/services/prometheus:9090/proxy",
        ),
        ("https://user:secret@prometheus/p?tenant=t", "https://prometheus:443/p"),
    ],
)
def test_an_address_is_shown_without_credentials_and_parameters(url: str, shown: str) -> None:
    assert endpoint_of(url).shown == shown


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("a.b", False),
    ],
)
def test_loopback_addresses_are_recognised(host: str, loopback: bool) -> None:  # noqa: FBT001 - a column of the table
    assert endpoint_of(f"http://{host}:9090").is_loopback is loopback


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "no http:// or https:// or no host"),
        ("prometheus:9090", "no http:// or https://"),
        ("ftp://prometheus", "no http:// or https://"),
        ("http://", "no host"),
        ("http://host:port", "host or port cannot be read"),
        ("http://host:99999", "host or port cannot be read"),
        ("http://host:0", "nothing answers on port 0: write its port"),
        ("http://[::1", "host or port cannot be read"),
        ("http://host/a b", "blanks or control characters"),
        ("http://host/\r\nHost: evil", "blanks or control characters"),
        ("http://host/#part", "never sent"),
        ("http://host/?query=up", "parameter 'query', which every query sets"),
        ("http://host/?match%5B%5D=up", "parameter 'match\\[\\]'"),
        ("http://host/?step=60", "parameter 'step', which every query sets"),
        ("http://host/graph?g0.expr=up&g0.tab=1", "page in a browser \\(parameter 'g0.expr'\\): write http"),
        ("http://host/api/v1", "ends with '/api/v1', which every request adds: leave it out"),
        ("http://host/p/api/v1/", "ends with '/api/v1'"),
        ("http://host/p/api/v1/query", "ends with '/api/v1/query'"),
        ("http://host/api/v1/query_range", "ends with '/api/v1/query_range'"),
        ("http://host/api/v1/series?dedup=false", "ends with '/api/v1/series'"),
    ],
)
def test_an_address_that_cannot_work_is_refused(url: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        PrometheusSettings(url)


def test_a_refused_address_does_not_show_its_password() -> None:
    for url in ("http://me:secret@host:port", "me:secret@host", "http://me:secret@host/#x", "http://me:secret@host/ "):
        with pytest.raises(SettingsError) as caught:
            PrometheusSettings(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verb": "PUT"}, "write POST or GET"),
        ({"connect_timeout_seconds": 0}, "connect timeout of 0 s"),
        ({"read_timeout_seconds": float("inf")}, "read timeout of inf s"),
        ({"pool_size": 0}, "at least 1"),
        ({"headers": (("Bad Header", "x"),)}, "has no valid name: write one such as X-Scope-OrgID"),
        ({"headers": (("X-A", "a\r\nX-B: b"),)}, "not allowed in a header: remove them"),
        ({"headers": (("Host", "x"),)}, "belongs to the connection and cannot be set: leave it out"),
        ({"headers": (("content-LENGTH", "1"),)}, "belongs to the connection and cannot be set: leave it out"),
        ({"client_cert_file": Path("c")}, "belong together"),
        ({"client_key_file": Path("k")}, "belong together"),
        ({"url": "http://host", "ca_file": Path("ca")}, "without TLS"),
        ({"password": "p"}, "password without a user name"),
        ({"password_file": Path("p")}, "password without a user name"),
        ({"username": "u", "password": "p", "password_file": Path("p")}, "leave one of them out"),
        ({"username": "u:v", "password": "p"}, "use a name without one, or a token"),
        ({"username": "u", "password": "p", "token_file": Path("t")}, "more than one way"),
        ({"url": "https://u:p@host", "token_file": Path("t")}, "more than one way"),
        ({"token_file": Path("t"), "headers": (("authorization", "x"),)}, "more than one way"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        PrometheusSettings(**{"url": "https://host", **options})


@pytest.mark.parametrize("name", ["Authorization: Basic bWU6c2VjcmV0", "Bearer secret", "secret token:"])
def test_a_refused_name_of_a_header_is_not_shown_where_it_may_hold_the_value(name: str) -> None:
    # `Authorization: Basic bWU6c2VjcmV0==`, as other programs write headers, has an equals sign in the value.
    with pytest.raises(SettingsError, match=r"not a name of a header|has no valid name") as caught:
        PrometheusSettings("https://host", headers=((name, "="),))
    assert "secret" not in str(caught.value)
    assert "bWU6" not in str(caught.value)
    assert ("'Authorization'" in str(caught.value)) == name.startswith("Authorization")


def test_the_representation_contains_no_secret() -> None:
    settings = PrometheusSettings(
        "https://host/?token=secret-parameter", username="me", password="secret", headers=(("X-Key", "secret-header"),)
    )
    assert "secret" not in repr(settings)
    assert "secret" not in repr(PrometheusSettings("https://me:secret@host"))


def test_user_and_password_of_the_url_are_decoded() -> None:
    assert PrometheusSettings("https://me%40home:p%3Aw@host").basic_credentials == ("me@home", "p:w")
    assert PrometheusSettings("https://me@host").basic_credentials == ("me", "")
    assert PrometheusSettings("https://host").basic_credentials is None
