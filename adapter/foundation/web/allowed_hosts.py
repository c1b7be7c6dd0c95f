"""Determines to which host names a server answers. A request for another name may be a DNS rebinding attack.

A malicious page can make its own name resolve to an address of this machine, and could then read the answers in the
browser that shows the page. The name is in the `Host` header, which no page can change.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from adapter.foundation.web.http import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOOPBACK_NAME = "localhost"


class AllowedHosts:
    """The hosts to answer to: loopback, and the listed names and addresses."""

    def __init__(self, listed: Iterable[str]) -> None:
        """Take names and addresses without a port; raises ValueError for anything else."""
        self._listed = frozenset(_normal(host) for host in listed)
        for host in self._listed:
            if not host or set(host) & set("/@:?# *") - ({":"} if _address(host) else set()):
                raise ValueError(f"{host!r} is not a host: write a name or an address, without scheme and port")

    def allows(self, authority: str) -> bool:
        """Return whether a `Host` header, with or without a port, names an allowed host."""
        try:
            host = _normal(urlsplit(f"//{authority}").hostname or "")
        except ValueError:
            return False
        address = _address(host)
        return host in self._listed or host == _LOOPBACK_NAME or (address is not None and address.is_loopback)


def only_hosts(application: WSGIApplication, hosts: AllowedHosts, repair: str) -> WSGIApplication:
    """Return an application that answers 421 to requests for other hosts; `repair` says how to allow a host.

    A request without a `Host` header is answered, because it cannot come from a browser.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        for authority in _authorities(environ):
            if not hosts.allows(authority):
                return _misdirected_answer(authority, repair, start_response)
        return application(environ, start_response)

    return answer


def _authorities(environ: WSGIEnvironment) -> list[str]:
    """Return the hosts that a request names: in its `Host` header, and in an absolute target (RFC 9112, 3.2.2)."""
    target: str = environ["RAW_URI"]
    header = environ.get("HTTP_HOST")
    absolute = [] if target.startswith("/") or "://" not in target else [_authority_of(target)]
    return absolute if header is None else [header, *absolute]


def _authority_of(target: str) -> str:
    return target.partition("://")[2].partition("/")[0]


def _misdirected_answer(
    authority: str, repair: str, start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    body = f"this server is not known as {authority[:200]!r}: {repair}\n".encode("utf-8", "backslashreplace")
    headers = [("Content-Type", TEXT), ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")]
    start_response("421 Misdirected Request", headers)
    return [body]


def _normal(host: str) -> str:
    lower = host.strip("[]").rstrip(".").lower()
    return str(_address(lower) or lower)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
