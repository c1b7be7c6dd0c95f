"""Protection from DNS rebinding: the names under which a server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.web.allowed_hosts import AllowedHosts, only_hosts

if TYPE_CHECKING:
    from collections.abc import Callable
    from wsgiref.types import StartResponse, WSGIEnvironment

HOSTS = AllowedHosts(["Page.example.com", "10.0.0.7", "[fd00::1]"])


@pytest.mark.parametrize(
    "authority",
    [
        "localhost",
        "localhost:8081",
        "LOCALHOST.",
        "127.0.0.1:8081",
        "127.9.9.9",
        "[::1]:8081",
        "page.example.com",
        "PAGE.example.com.:443",
        "10.0.0.7:8081",
        "[fd00::1]:80",
        "[FD00:0::1]",
    ],
)
def test_loopback_and_listed_hosts_are_answered(authority: str) -> None:
    assert HOSTS.allows(authority)


@pytest.mark.parametrize(
    "authority",
    [
        "",
        "evil.example",
        "evil.example:8081",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example@localhost.evil",
        "10.0.0.8",
        "[::2]",
        "[::1",
        "2130706433",
        "page.example.com.evil",
        "\u00e4",
    ],
)
def test_other_hosts_are_refused(authority: str) -> None:
    assert not HOSTS.allows(authority)


@pytest.mark.parametrize("listed", ["", "http://a", "a:80", "a/b", "*", "*.example.com", "a b", "a@b"])
def test_a_listed_value_that_is_not_a_host_is_refused(listed: str) -> None:
    with pytest.raises(ValueError, match="is not a host: write a name or an address"):
        AllowedHosts([listed])


def application(_environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    start_response("200 OK", [])
    return [b"page"]


def answer_of(environ: WSGIEnvironment) -> tuple[str, bytes]:
    """Return status and body of the protected application."""
    statuses: list[str] = []

    def start_response(status: str, _headers: object, _error: object = None, /) -> Callable[[bytes], object]:
        statuses.append(status)
        return lambda _: None

    body = b"".join(only_hosts(application, HOSTS, "ask for localhost")(environ, start_response))
    return statuses[0], body


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("/", "localhost:1", "200 OK"),
        ("/?next=http://evil.example/", "localhost", "200 OK"),
        ("/", None, "200 OK"),
        ("/", "evil.example", "421 Misdirected Request"),
        ("/", "", "421 Misdirected Request"),
        ("http://localhost/", "localhost", "200 OK"),
        ("http://evil.example/", "localhost", "421 Misdirected Request"),
        ("http://evil.example/", None, "421 Misdirected Request"),
    ],
)
def test_the_host_header_and_an_absolute_target_are_checked(target: str, host: str | None, status: str) -> None:
    answered, body = answer_of({"RAW_URI": target} | ({} if host is None else {"HTTP_HOST": host}))
    assert answered == status
    assert body == b"page" or b"ask for localhost" in body
