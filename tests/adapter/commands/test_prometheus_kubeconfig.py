"""A running `serve` that queries Prometheus with the kubeconfig of `--prometheus-auth-config`, which is replaced."""

from __future__ import annotations

import json
import os
import ssl
from functools import partial
from typing import TYPE_CHECKING

import yaml

from demo.machine.certificates import Authority
from tests.adapter.commands.harness import SHOP
from tests.support.recording_proxy import recording_proxy
from tests.support.rotation import Rotation, leave_out
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

WEB = {"labelSelector": "app=web"}
REFRESHED = ("--max-answer-age=3s", "--refresh-interval=1s")


def kubeconfig(user: Mapping[str, object], ca_file: Path) -> str:
    cluster = {"server": "https://unused.example", "certificate-authority": str(ca_file)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "one",
            "clusters": [{"name": "one", "cluster": cluster}],
            "users": [{"name": "one", "user": user}],
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        }
    )


def status(caller: Caller) -> int:
    return caller.pods("open_connections", **WEB).status


def refused_so_often(adapter: Adapter, number: int) -> bool:
    return len(adapter.said("cannot be used; the last good version stays in use")) == number


def test_changes_of_the_kubeconfig_its_token_and_its_ca_are_followed(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    first, second = (Authority(tmp_path / name, name) for name in ("first", "second"))
    pair = first.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate_file, pair.key_file)
    rotation = Rotation(tmp_path / "volume")
    rotation.write(kubeconfig({"token": "the-first-secret"}, first.ca_file))
    tokens = Rotation(tmp_path / "tokens")
    tokens.write("the-third-secret")
    broken: tuple[Callable[[Path], object], ...] = (
        os.mkfifo,
        lambda path: path.write_text(""),
        lambda path: path.write_text("two\nlines-of-the-secret"),
        lambda path: path.write_bytes(b"\xff\xfesecret-in-bytes"),
        lambda path: path.write_text("token: [secret"),
        lambda path: path.write_text(kubeconfig({"token": "two\nlines-of-the-secret"}, first.ca_file)),
        lambda path: path.write_text(kubeconfig({"token": "secret"}, tmp_path / "no-ca")),
        lambda path: path.write_text(kubeconfig({"tokenFile": "no-token"}, first.ca_file)),
        lambda path: path.mkdir(),
        leave_out,
    )
    name = f"Prometheus kubeconfig ({rotation.token})"

    def refused(adapter: Adapter) -> float:
        return adapter.metric("tidewatch_credentials_refused", credentials=name)

    with recording_proxy(prometheus.url, context) as proxy:
        proxy.authorization = "Bearer the-first-secret"
        flags = (f"--prometheus-url={proxy.url}", f"--prometheus-auth-config={rotation.token}", *REFRESHED)
        with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter, adapter.caller() as caller:
            eventually(lambda: status(caller) == 200)
            for number, prepare in enumerate(broken, start=1):
                rotation.swap(prepare)
                eventually(partial(refused_so_often, adapter, number))
                # Not at once: on a busy machine the last answer may be older than is allowed.
                asked = len(proxy.requests)
                eventually(lambda asked=asked: len(proxy.requests) > asked and status(caller) == 200)  # type: ignore[misc]  # bound in the loop
            assert proxy.refusals == 0
            assert refused(adapter) == 1.0
            # Another token, and another CA.
            proxy.authorization = "Bearer the-second-secret"
            pair = second.server()
            context.load_cert_chain(pair.certificate_file, pair.key_file)
            eventually(lambda: status(caller) == 503)
            rotation.write(kubeconfig({"token": "the-second-secret"}, second.ca_file))
            eventually(lambda: refused(adapter) == 0.0)
            eventually(lambda: status(caller) == 200)
            # A token file, which is replaced while the kubeconfig stays as it is.
            proxy.authorization = "Bearer the-third-secret"
            eventually(lambda: status(caller) == 503)
            rotation.write(kubeconfig({"tokenFile": str(tokens.token)}, second.ca_file))
            eventually(lambda: status(caller) == 200)
            tokens.write("the-fourth-secret")
            eventually(lambda: status(caller) == 503)
            proxy.authorization = "Bearer the-fourth-secret"
            eventually(lambda: status(caller) == 200)
            assert refused_so_often(adapter, len(broken))
            assert "secret" not in adapter.log


def test_an_exec_plugin_is_logged_at_the_start_as_not_run_again(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    path = tmp_path / "kubeconfig"
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    made = json.dumps({**credential, "status": {"token": "made-secret"}})
    program = {"apiVersion": credential["apiVersion"], "command": "echo", "args": [made], "interactiveMode": "Never"}
    path.write_text(kubeconfig({"exec": program}, trust.serving.ca_file))
    with recording_proxy(prometheus.url) as proxy:
        proxy.authorization = "Bearer made-secret"
        flags = (f"--prometheus-url={proxy.url}", f"--prometheus-auth-config={path}", *REFRESHED)
        with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter, adapter.caller() as caller:
            eventually(lambda: status(caller) == 200)
            (line,) = adapter.said("the program of 'exec' makes the credentials")
            assert "let it write a file for --prometheus-token-file" in line
            assert "secret" not in adapter.log
