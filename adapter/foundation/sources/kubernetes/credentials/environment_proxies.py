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
    """Return whether a variable names a proxy; if so, the package has to be used, since only it knows proxies."""
    lower = {name.lower(): value for name, value in environ.items()}
    return lower.get("no_proxy") != "*" and any(lower.get(f"{scheme}_proxy") for scheme in ("http", "https"))


def use_proxy_of_environment(configuration: Configuration) -> None:
    """Set the proxy that the environment names for this server, unless the configuration has one from a kubeconfig.

    As in kubectl, there is none for localhost and for what NO_PROXY names, and ALL_PROXY does not count.
    """
    from kubernetes.client.rest import should_bypass_proxies  # noqa: PLC0415 - see the docstring of `access`

    if configuration.proxy:
        return
    proxies, server = getproxies(), urlsplit(str(configuration.host))
    host = server.hostname or ""
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if not is_local and not should_bypass_proxies(configuration.host, proxies.get("no", "")):
        configuration.proxy = proxies.get(server.scheme)
