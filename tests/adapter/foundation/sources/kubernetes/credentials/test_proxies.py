"""Proxies of the environment and of kubeconfigs, used for the same API servers as by kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from urllib3 import ProxyManager

from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig, proxy_target
from adapter.foundation.sources.kubernetes.credentials.own_server_access import DirectServer, direct_access
from adapter.foundation.sources.kubernetes.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

PROXY = "http://proxy.example:3128"
ELSEWHERE = "https://api.example.com"


def kubeconfig(folder: Path, server: str, **cluster: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "test", "user": {"token": "a"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def uses_proxy(path: str) -> bool:
    return isinstance(from_kubeconfig(path)().pool_manager, ProxyManager)


def name_proxy(monkeypatch: pytest.MonkeyPatch, except_for: str = "") -> None:
    for name, value in (("https_proxy", PROXY), ("no_proxy", except_for)):
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.upper(), value)


@pytest.mark.parametrize(
    ("server", "except_for"),
    [
        ("https://localhost:6443", ""),
        ("https://127.0.0.1:6443", ""),
        ("https://[::1]:6443", ""),
        ("https://10.96.0.1", "10.0.0.0/8"),
        (ELSEWHERE, ".example.com"),
    ],
)
def test_the_proxy_of_the_environment_is_left_out_for_this_machine_and_by_no_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, except_for: str
) -> None:
    name_proxy(monkeypatch, except_for)
    path = kubeconfig(tmp_path, server)
    assert not uses_proxy(path)
    assert proxy_target(path, None).host == server
    own_server = DirectServer(url=server, kubeconfig=path)
    assert not isinstance(direct_access(own_server)().pool_manager, ProxyManager)


def test_the_proxy_of_the_environment_is_used_for_other_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_proxy(monkeypatch, "other.example")
    path = kubeconfig(tmp_path, ELSEWHERE)
    assert uses_proxy(path)
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY names a proxy for it: give Prometheus's address"):
        proxy_target(path, None)


@pytest.mark.parametrize("proxy", ["http://other.example:3128", PROXY])
@pytest.mark.parametrize("except_for", ["", "localhost"])
def test_the_proxy_of_a_kubeconfig_is_always_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str, except_for: str
) -> None:
    """Also if the environment names the same proxy, but not for this server."""
    name_proxy(monkeypatch, except_for)
    assert uses_proxy(kubeconfig(tmp_path, "https://localhost:6443", **{"proxy-url": proxy}))


@pytest.mark.parametrize("variable", ["all_proxy", "http_proxy"])
def test_only_the_proxy_for_https_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Go does not know ALL_PROXY."""
    name_proxy(monkeypatch)
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, PROXY)
    assert not uses_proxy(kubeconfig(tmp_path, ELSEWHERE, **{"disable-compression": "true"}))
