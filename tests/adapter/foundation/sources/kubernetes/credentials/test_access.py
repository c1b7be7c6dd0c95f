"""The API server's address and the access to it: kubeconfigs, service accounts, and credentials that are renewed."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import ssl
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import (
    access,
    from_kubeconfig,
    in_cluster,
    package_transport,
)
from adapter.foundation.sources.kubernetes.credentials.context_namespace import context_namespace
from adapter.foundation.sources.kubernetes.errors import ConfigurationError, UnauthorizedError, UnreachableError
from demo.machine.certificates import Authority
from tests.adapter.foundation.sources.kubernetes.client_documents import PODS, kind_of
from tests.support.fake_apiserver import TOKEN, FakeApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.sources.kubernetes.answers import Answer

CONTEXT = "current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}]"
LOCAL = "{server: 'https://localhost'}"
USER = "{name: u, user: {token: s3cret}}"
OTHER_USER = "{name: v, user: {token: s3cret}}"
CLUSTER = "{server: 'https://localhost', certificate-authority: missing.crt}"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def tls_server(authority: Authority) -> Iterator[FakeApiServer]:
    with FakeApiServer(server_context(authority)) as running:
        yield running


@pytest.fixture
def service_account(tmp_path: Path, authority: Authority) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(TOKEN)
    shutil.copy(authority.ca_file, folder / "ca.crt")
    return folder


def server_context(authority: Authority) -> ssl.SSLContext:
    pair = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    return context


def with_ca_inside(kubeconfig: Path, bundle: Path) -> None:
    """Put the CAs into the kubeconfig itself instead of naming their file."""
    content = yaml.safe_load(kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    cluster.pop("certificate-authority", None)
    cluster["certificate-authority-data"] = base64.b64encode(bundle.read_bytes()).decode()
    kubeconfig.write_text(yaml.safe_dump(content))


def environ_of(server: FakeApiServer) -> dict[str, str]:
    host, port = server.url.removeprefix("https://").split(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def test_a_waiting_tls_read_can_be_cancelled_from_another_thread(
    tls_server: FakeApiServer, authority: Authority, tmp_path: Path
) -> None:
    tls_server.put("pods", "shop", "a")
    kubeconfig = tls_server.kubeconfig(tmp_path / "config", ca_file=authority.ca_file)
    client = KubernetesClient(from_kubeconfig(str(kubeconfig)))
    first, ended = threading.Event(), threading.Event()

    def read(answer: Answer) -> None:
        with contextlib.suppress(UnreachableError):
            for _piece in answer.pieces(60.0):
                first.set()
        ended.set()

    with client.open(PODS, {"watch": "true"}, silence=60.0) as answer:
        threading.Thread(target=read, args=(answer,), daemon=True).start()
        assert first.wait(10.0)
        assert not ended.wait(0.05)
        answer.cancel()
        assert ended.wait(10.0)


class TestRotation:
    def test_a_token_file_of_a_kubeconfig_is_read_again_when_its_token_is_refused(
        self, server: FakeApiServer, tmp_path: Path
    ) -> None:
        token = tmp_path / "token"
        token.write_text(f"{TOKEN}\n")
        kubeconfig = server.kubeconfig(tmp_path / "config", user={"tokenFile": str(token)})
        client = KubernetesClient(from_kubeconfig(str(kubeconfig)))
        client.get(PODS)
        server.tokens = {"the-next-one"}
        token.write_text("the-next-one\n")
        client.get(PODS)
        assert server.requests[-1].headers["authorization"] == "Bearer the-next-one"

    def test_the_service_account_is_read_again_when_its_token_is_refused(
        self, tls_server: FakeApiServer, service_account: Path
    ) -> None:
        client = KubernetesClient(in_cluster(service_account, environ_of(tls_server)))
        client.get(PODS)
        tls_server.tokens = {"the-next-one"}
        (service_account / "token").write_text("the-next-one")
        client.get(PODS)
        assert [request.headers["authorization"] for request in tls_server.requests] == [
            f"bearer {TOKEN}",
            f"bearer {TOKEN}",
            "bearer the-next-one",
        ]

    def test_an_exec_plugin_is_run_again_when_its_token_is_refused(self, server: FakeApiServer, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text(TOKEN)
        program = (
            "import json, pathlib, sys; "
            "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', "
            "'status': {'token': pathlib.Path(sys.argv[1]).read_text()}}))"
        )
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", program, str(token)],
        }
        kubeconfig = server.kubeconfig(tmp_path / "config", user={"exec": plugin})
        client = KubernetesClient(from_kubeconfig(str(kubeconfig)))
        client.get(PODS)
        server.tokens = {"the-next-one"}
        token.write_text("the-next-one")
        client.get(PODS)
        assert server.requests[-1].headers["authorization"] == "Bearer the-next-one"

    def test_a_token_that_stays_refused_is_not_read_at_every_request(
        self, server: FakeApiServer, tmp_path: Path
    ) -> None:
        now = [1000.0]
        kubeconfig = server.kubeconfig(tmp_path / "config", user={"token": "expired"})
        client = KubernetesClient(from_kubeconfig(str(kubeconfig)), clock=lambda: now[0])
        for count in (2, 3, 4):
            with pytest.raises(UnauthorizedError):
                client.get(PODS)
            assert len(server.requests) == count
        now[0] += 11.0
        with pytest.raises(UnauthorizedError):
            client.get(PODS)
        assert len(server.requests) == 6

    def test_a_client_key_without_a_certificate_is_ignored_beside_a_token(
        self, server: FakeApiServer, tmp_path: Path
    ) -> None:
        user = {"token": TOKEN, "client-key-data": "aGk="}
        client = KubernetesClient(from_kubeconfig(str(server.kubeconfig(tmp_path / "config", user=user))))
        client.get(PODS)
        assert server.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"

    def test_a_request_without_a_token_is_refused(self, server: FakeApiServer, tmp_path: Path) -> None:
        client = KubernetesClient(from_kubeconfig(str(server.kubeconfig(tmp_path / "config", user={}))))
        with pytest.raises(UnauthorizedError, match="system:anonymous"):
            client.get(PODS)

    def test_a_missing_token_file_is_an_error_of_that_request(
        self, tls_server: FakeApiServer, service_account: Path
    ) -> None:
        client = KubernetesClient(in_cluster(service_account, environ_of(tls_server)))
        tls_server.tokens = {"the-next-one"}
        (service_account / "token").unlink()
        with pytest.raises(ConfigurationError, match="Service token file does not exist"):
            client.get(PODS)

    def test_a_ca_bundle_is_read_again_when_the_certificate_is_not_verified(
        self, tls_server: FakeApiServer, authority: Authority, tmp_path: Path
    ) -> None:
        bundle = tmp_path / "bundle.crt"
        shutil.copy(Authority(tmp_path / "other").ca_file, bundle)
        kubeconfig = tls_server.kubeconfig(tmp_path / "config", ca_file=bundle)
        now = [1000.0]
        client = KubernetesClient(from_kubeconfig(str(kubeconfig)), clock=lambda: now[0])
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            client.get(PODS)
        assert tls_server.requests == []
        shutil.copy(authority.ca_file, bundle)
        now[0] += 11.0
        assert kind_of(client.get(PODS)) == "PodList"

    @pytest.mark.parametrize("where", ["file", "kubeconfig", "service account", "package"])
    def test_a_removed_ca_is_no_longer_trusted(
        self, tls_server: FakeApiServer, authority: Authority, service_account: Path, tmp_path: Path, where: str
    ) -> None:
        """While the server shows a certificate of the removed CA, no refused request gives the removal away."""
        other, bundle, now = Authority(tmp_path / "other"), service_account / "ca.crt", [1000.0]
        bundle.write_text(authority.ca_file.read_text() + other.ca_file.read_text())
        kubeconfig = tls_server.kubeconfig(tmp_path / "config", ca_file=bundle)
        if where == "kubeconfig":
            with_ca_inside(kubeconfig, bundle)
        if where == "package":
            content = yaml.safe_load(kubeconfig.read_text())
            content["clusters"][0]["cluster"]["disable-compression"] = True
            kubeconfig.write_text(yaml.safe_dump(content))
        in_a_pod = in_cluster(service_account, environ_of(tls_server))
        client = KubernetesClient(
            in_a_pod if where == "service account" else from_kubeconfig(str(kubeconfig)), clock=lambda: now[0]
        )
        assert kind_of(client.get(PODS)) == "PodList"
        bundle.write_text(other.ca_file.read_text())
        if where == "kubeconfig":
            with_ca_inside(kubeconfig, bundle)
        now[0] += 61.0
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            client.get(PODS)

    def test_a_repaired_token_file_is_read_without_a_new_refusal(
        self, server: FakeApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        token, now = tmp_path / "token", [1000.0]
        token.write_text(TOKEN)
        kubeconfig = server.kubeconfig(tmp_path / "config", user={"tokenFile": str(token)})
        client = KubernetesClient(from_kubeconfig(str(kubeconfig)), clock=lambda: now[0])
        client.get(PODS)
        token.write_text("")
        server.tokens = set()
        with pytest.raises(ConfigurationError, match=f"the token file {token} is empty"):
            client.get(PODS)
        token.write_text(TOKEN)
        server.tokens = {TOKEN}
        now[0] += 61.0
        with caplog.at_level("INFO"):
            client.get(PODS)
        assert "credentials for the API server: the new version is in use" in caplog.text

    def test_a_ca_file_that_breaks_leaves_the_last_good_one_in_use(
        self,
        tls_server: FakeApiServer,
        authority: Authority,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        bundle, now = tmp_path / "bundle.crt", [1000.0]
        shutil.copy(authority.ca_file, bundle)
        kubeconfig = tls_server.kubeconfig(tmp_path / "config", ca_file=bundle)
        client = KubernetesClient(from_kubeconfig(str(kubeconfig)), clock=lambda: now[0])
        assert kind_of(client.get(PODS)) == "PodList"
        bundle.write_text("-----BEGIN CERTIFICATE-----\nhalf of")
        for _ in range(3):
            now[0] += 61.0
            assert kind_of(client.get(PODS)) == "PodList"
        (message,) = caplog.messages
        assert "the last good version stays in use" in message


class TestConfiguration:
    def test_the_named_context_is_used(self, server: FakeApiServer, tmp_path: Path) -> None:
        path = server.kubeconfig(tmp_path / "config")
        content = yaml.safe_load(path.read_text())
        content["users"].append({"name": "other", "user": {"token": "not-taken"}})
        content["contexts"].append({"name": "other", "context": {"cluster": "test", "user": "other"}})
        path.write_text(yaml.safe_dump(content))
        KubernetesClient(from_kubeconfig(str(path))).get(PODS)
        with pytest.raises(UnauthorizedError):
            KubernetesClient(from_kubeconfig(str(path), "other")).get(PODS)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("", "the file is empty"),
            ("a: [", "not YAML, line 1"),
            ("a: \a", "not YAML"),
            ("- a list", "not in the expected form"),
            ("users: " + 5000 * "[" + 5000 * "]", "nested too deeply"),
            ("kind: Config", "there is no key current-context"),
            (
                "{current-context: a, contexts: [{name: b}], clusters: [], users: [{name: u, user: {token: s3cret}}]}",
                "there is no context named a",
            ),
            (
                f"{{{CONTEXT}, clusters: [], users: [{USER}, {{user: {{token: s3cret}}}}]}}",
                "not in the expected form",
            ),
            (
                f"{{{CONTEXT}, clusters: [{{name: c, cluster: {LOCAL}}}], users: [{OTHER_USER}]}}",
                "there is no user named u",
            ),
            (
                f"{{{CONTEXT}, clusters: [{{name: c, cluster: {CLUSTER}}}], users: [{USER}]}}",
                "File does not exist",
            ),
        ],
        ids=[
            "empty",
            "not YAML",
            "a control character",
            "a list",
            "too deep",
            "no context",
            "context of another name",
            "user without name",
            "no user of that name",
            "no CA",
        ],
    )
    def test_the_error_for_a_wrong_kubeconfig_has_the_reason_and_no_secrets(
        self, tmp_path: Path, content: str, reason: str
    ) -> None:
        path = tmp_path / "config"
        path.write_text(content)
        with pytest.raises(ConfigurationError, match=reason) as raised:
            KubernetesClient(from_kubeconfig(str(path)))
        assert str(path) in str(raised.value)
        assert "s3cret" not in str(raised.value)
        assert raised.value.__suppress_context__

    def test_an_empty_value_counts_as_a_missing_one_for_the_package(
        self, tls_server: FakeApiServer, authority: Authority, tmp_path: Path
    ) -> None:
        path = tls_server.kubeconfig(tmp_path / "config", ca_file=authority.ca_file)
        content = yaml.safe_load(path.read_text())
        content["clusters"][0]["cluster"]["certificate-authority-data"] = ""
        content["users"][0]["user"] |= {"client-certificate": "", "tokenFile": None}
        path.write_text(yaml.safe_dump(content))
        assert kind_of(KubernetesClient(lambda: package_transport(str(path))).get(PODS)) == "PodList"

    @pytest.mark.parametrize("kind", ["a FIFO", "a device", "too large"])
    def test_a_kubeconfig_that_would_be_read_without_end_is_refused(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "config"
        if kind == "a FIFO":
            os.mkfifo(path)
        elif kind == "a device":
            path = Path("/dev/zero")
        else:
            path.touch()
            os.truncate(path, 17 << 20)
        with pytest.raises(ConfigurationError, match=r"is not a regular file|larger than 16 MiB") as caught:
            KubernetesClient(from_kubeconfig(str(path)))
        assert str(caught.value).count(str(path)) == 1
        assert context_namespace(str(path), None) == "default"

    @pytest.mark.parametrize("name", ["/dev/fd/{reader}", "{folder}/link"])
    def test_a_kubeconfig_may_come_from_another_command(self, server: FakeApiServer, tmp_path: Path, name: str) -> None:
        """As with `--kubeconfig <(kubectl config view --raw)`, and with `/dev/stdin`, which is a link."""
        reader, writer = os.pipe()
        os.write(writer, server.kubeconfig(tmp_path / "config").read_bytes())
        os.close(writer)
        (tmp_path / "link").symlink_to(f"/proc/{os.getpid()}/fd/{reader}")
        client = KubernetesClient(from_kubeconfig(name.format(reader=reader, folder=tmp_path)))
        assert kind_of(client.get(PODS)) == "PodList"
        os.close(reader)

    def test_a_missing_kubeconfig_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="there is no such file"):
            KubernetesClient(from_kubeconfig(str(tmp_path / "missing")))

    def test_a_user_without_a_home_has_no_default_kubeconfig(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr(os, "getuid", lambda: 1_000_660_000)  # as on OpenShift, in no passwd file
        with pytest.raises(ConfigurationError, match="there is no such file"):
            KubernetesClient(from_kubeconfig("~/.kube/config"))

    def test_a_missing_service_account_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="Service host/port is not set"):
            KubernetesClient(in_cluster(tmp_path, {}))

    def test_outside_of_a_pod_the_default_kubeconfig_is_used(
        self, server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "config")))
        assert kind_of(KubernetesClient(access(None, None)).get(PODS)) == "PodList"

    def test_in_a_pod_its_service_account_is_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
        with pytest.raises(ConfigurationError, match="service account in /var/run/secrets"):
            KubernetesClient(access(None, None))
