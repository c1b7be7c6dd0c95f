"""The identity shown to a server that is queried directly, and the parts of a kubeconfig that are not used for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.foundation.sources.kubernetes.credentials.own_server_access import DirectServer, direct_access
from adapter.foundation.sources.kubernetes.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://adapter.example:6443"


def kubeconfig(folder: Path, user: dict[str, Any]) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {
                "name": "test",
                "cluster": {
                    "server": "https://cluster.example",
                    "insecure-skip-tls-verify": True,
                    "tls-server-name": "cluster.example",
                },
            }
        ],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_only_the_user_of_a_kubeconfig_is_used(tmp_path: Path) -> None:
    server = DirectServer(url=f"{URL}/", kubeconfig=kubeconfig(tmp_path, {"token": "secret"}))
    configuration = direct_access(server)().configuration

    assert configuration.host == URL
    assert configuration.verify_ssl is True
    assert configuration.tls_server_name is None
    assert configuration.ssl_ca_cert is None
    assert configuration.get_api_key_with_prefix("authorization") == "Bearer secret"


def test_a_token_file_takes_precedence_over_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-the-file\n")
    config = kubeconfig(tmp_path, {"token": "secret"})
    server = DirectServer(url=URL, token_file=tmp_path / "token", kubeconfig=config)

    configuration = direct_access(server)().configuration
    assert configuration.get_api_key_with_prefix("authorization") == "Bearer from-the-file"


@pytest.mark.parametrize("user", [{}, {"username": "a", "password": "secret"}])
def test_a_user_without_a_token_or_certificate_is_an_error(tmp_path: Path, user: dict[str, Any]) -> None:
    server = DirectServer(url=URL, kubeconfig=kubeconfig(tmp_path, user))

    with pytest.raises(ConfigurationError, match="neither a token nor a client certificate"):
        direct_access(server)()


@pytest.mark.parametrize("content", [None, b"", b"\n", b"two\nlines", b"\xff\xfe", "t\u00f6ken".encode()])
def test_a_file_without_a_token_is_an_error_that_does_not_show_its_content(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)

    with pytest.raises(ConfigurationError, match="the token file") as refused:
        direct_access(DirectServer(url=URL, token_file=tmp_path / "token"))()
    assert "lines" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://adapter.example",
        "adapter.example:443",
        "https://",
        "https://a.example:port",
        "https://user:secret@a.example",
        "https://a.example/prefix",
        "https://a.example?x=1",
        "https://[::1",
    ],
)
def test_an_address_that_is_not_plain_https_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write https://HOST\[:PORT\]") as refused:
        DirectServer(url=url)
    assert "secret" not in str(refused.value)
