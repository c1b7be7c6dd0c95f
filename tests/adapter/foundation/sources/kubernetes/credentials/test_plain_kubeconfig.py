"""Plain kubeconfigs are read without the package `kubernetes`, and give the same access as with it."""

from __future__ import annotations

import base64
import errno
import json
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import yaml

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.credentials.context_namespace import context_namespace
from adapter.foundation.sources.kubernetes.credentials.plain_kubeconfig import plain_access, service_account_token
from adapter.foundation.sources.kubernetes.errors import ConfigurationError
from adapter.foundation.sources.kubernetes.transport import PlainTransport
from demo.machine.certificates import Authority
from tests.adapter.foundation.sources.kubernetes.client_documents import PODS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fake_apiserver import FakeApiServer


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    path = folder / "config"
    content = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://a:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_plain_kubeconfig_is_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("KEY")
    cluster = {"certificate-authority-data": data("CA"), "tls-server-name": "b", "insecure-skip-tls-verify": False}
    user = {"token": "t", "client-certificate-data": data("CERT"), "client-key": "key"}
    found = plain_access(kubeconfig(tmp_path, cluster, user), None)
    assert found is not None
    assert (found.host, found.authorities, found.client_certificate) == ("https://a:6443", "CA", "CERT\nKEY")
    assert (found.verifies, found.server_name) == (True, "b")
    assert found.token is not None
    assert found.token() == "Bearer t"
    assert plain_access(kubeconfig(tmp_path, cluster, user), "another") is None


def test_a_client_certificate_needs_no_writable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may have none, and its private keys belong on no disk."""

    def refuse() -> NoReturn:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    client = Authority(tmp_path / "clients").client("somebody")
    user = {"client-certificate": str(client.certificate_file), "client-key": str(client.key_file)}
    access = plain_access(kubeconfig(tmp_path, {}, user), None)
    assert access is not None
    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    PlainTransport(access).close()


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_value_counts_as_a_missing_one(tmp_path: Path, empty: str | None) -> None:
    """As with kubectl: without a CA, for example, the system's CAs count."""
    (tmp_path / "ca").write_text("CA")
    cluster = {"certificate-authority": "ca", "certificate-authority-data": empty, "tls-server-name": empty}
    user = {"token": "t", "tokenFile": empty, "client-certificate": empty, "client-key-data": empty, "username": empty}
    found = plain_access(kubeconfig(tmp_path, {**cluster, "proxy-url": empty}, user), None)
    assert found is not None
    assert (found.authorities, found.client_certificate, found.server_name) == ("CA", None, None)
    found = plain_access(kubeconfig(tmp_path, {"certificate-authority": empty}, user), None)
    assert found is not None
    assert found.authorities is None


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({}, {"exec": {"command": "x"}}),
        ({}, {"auth-provider": {"name": "x"}}),
        ({}, {"username": "a", "password": "b"}),
        ({}, {"as": "somebody"}),
        ({"proxy-url": "http://p"}, {}),
        ({"server": "a:6443"}, {}),
        ({"certificate-authority": "missing"}, {}),
        ({}, {"tokenFile": "missing"}),
        ({}, {"client-certificate-data": data("CERT")}),
        ({}, {"token": "a", "tokenFile": "b"}),
        ({}, {"token": ["a"]}),
        ({"insecure-skip-tls-verify": "yes"}, {}),
    ],
    ids=str,
)
def test_every_other_kubeconfig_is_left_to_the_package(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    assert plain_access(kubeconfig(tmp_path, cluster, user), None) is None


def test_a_link_to_itself_is_left_to_the_package(tmp_path: Path) -> None:
    link = tmp_path / "config"
    link.symlink_to(link)
    assert plain_access(str(link), None) is None


@pytest.mark.parametrize("before", ["", "clusters: "])
@pytest.mark.parametrize("bracket", ["[", "{"])
def test_a_kubeconfig_that_is_nested_without_end_is_refused_before_it_is_read_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, bracket: str
) -> None:
    def refuse(_: object) -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(yaml, "safe_load", refuse)
    path = tmp_path / "config"
    path.write_text(before + bracket * 60_000)
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        KubernetesClient(from_kubeconfig(str(path)))
    assert context_namespace(str(path), None) == "default"


def test_the_last_good_token_of_a_service_account_is_sent_while_the_file_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now, path = [1000.0], tmp_path / "token"
    path.write_text("first-one\n")
    token = service_account_token(path, lambda: now[0])
    for broken in ("", "two\nlines", "no-heäder", None):
        path.unlink()
        if broken is not None:
            path.write_text(broken)
        now[0] += 61.0
        assert token.current() == "bearer first-one"
    path.mkdir()
    now[0] += 61.0
    assert token.current() == "bearer first-one"
    path.rmdir()
    path.write_text("second-one\n")
    now[0] += 61.0
    assert token.current() == "bearer second-one"
    assert len(caplog.messages) == 5
    assert not any(word in caplog.text for word in ("first-one", "lines", "heäder"))


def test_requests_have_the_given_query_and_credentials(tmp_path: Path) -> None:
    found = plain_access(kubeconfig(tmp_path, {"insecure-skip-tls-verify": True}, {"token": "t"}), None)
    assert found is not None
    url, headers = PlainTransport(found).prepare("GET", "/api", {"labelSelector": "a=b,c in (d)"}, {"Accept": "x"})
    assert url == "https://a:6443/api?labelSelector=a%3Db%2Cc%20in%20%28d%29"
    assert headers == {"Accept": "x", "authorization": "Bearer t"}


def test_a_token_that_does_not_fit_into_a_header_is_not_shown(server: FakeApiServer, tmp_path: Path) -> None:
    path = server.kubeconfig(tmp_path / "config", user={"token": "s3c\nret"})
    client = KubernetesClient(from_kubeconfig(str(path)))
    with pytest.raises(ConfigurationError, match="contain characters that cannot be sent") as raised:
        client.get(PODS)
    assert raised.value.__suppress_context__


def test_the_package_is_not_loaded_for_a_kubeconfig_with_a_token(server: FakeApiServer, tmp_path: Path) -> None:
    path = server.kubeconfig(tmp_path / "config")
    program = f"""
import sys
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.client import KubernetesClient
KubernetesClient(from_kubeconfig({json.dumps(str(path))})).get("/api/v1/pods")
assert "kubernetes" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env={"no_proxy": "*"})
