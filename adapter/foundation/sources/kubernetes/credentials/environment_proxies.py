"""Proxies that the environment names (`HTTPS_PROXY`, `NO_PROXY`), used for the API server as by kubectl."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubernetes.client.configuration import Configuration


def may_use_a_proxy(environ: Mapping[str, str]) -> bool:
    """Return whether a variable names a proxy; if so, the package has to decide whether the proxy is used."""
    lower = {name.lower(): value for name, value in environ.items()}
    return lower.get("no_proxy") != "*" and any(lower.get(f"{scheme}_proxy") for scheme in ("http", "https", "all"))


def leave_out_unused_proxy(configuration: Configuration) -> None:
    """Remove a proxy that the environment names, but not for this server.

    As in kubectl, that is the case for localhost and for what NO_PROXY names. The package knows NO_PROXY alone.
    """
    from kubernetes.client.rest import should_bypass_proxies  # noqa: PLC0415 - see the docstring of `access`

    if configuration.proxy not in getproxies().values():
        return
    host = urlsplit(str(configuration.host)).hostname or ""
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if is_local or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        configuration.proxy = None
