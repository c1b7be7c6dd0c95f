"""Command lines with which prometheus-adapter is run: its manifests, its chart, its README, and kube-prometheus.

Each is started as it stands there, except that paths, addresses and the port must be those of this machine. What a
cluster passes to its pods comes from the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.serve_settings import serve_settings
from adapter.foundation.service.flags.parsing import parse_flags
from demo.machine.ports import free_port
from tests.adapter.commands.harness import RULES
from tests.adapter.commands.test_flags import publish_front_proxy
from tests.support import forked
from tests.support.fake_apiserver import FakeApiServer
from tests.support.serving import Adapter, Trust, eventually, serving_flags

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

SUITES: Final = ",".join(
    (
        *("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"),
        *("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
        *("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
        *("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
        *("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
        *("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "TLS_RSA_WITH_AES_128_GCM_SHA256"),
        *("TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_256_CBC_SHA"),
    )
)
WEAK = r"--tls-cipher-suites: weak suites are not offered: TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, .*AES_128_CBC_SHA256"
LOGS = "--logtostderr has no effect"
A_WORD = "the command line holds a word that is not a flag, which has no effect"

LINES: Final[dict[str, tuple[list[str], list[str]]]] = {
    "manifests of prometheus-adapter and kube-prometheus": (
        [
            *("--cert-dir={folder}/serving-cert", "--config={config}", "--metrics-relist-interval=1m"),
            *("--prometheus-url={prometheus}", "--secure-port={port}", f"--tls-cipher-suites={SUITES}"),
        ],
        [WEAK],
    ),
    "kube-prometheus until 0.12": (
        [
            *("--cert-dir={folder}/serving-cert", "--config={config}", "--logtostderr=true"),
            *("--metrics-relist-interval=1m", "--prometheus-url={prometheus}", "--secure-port={port}"),
            f"--tls-cipher-suites={SUITES}",
        ],
        [LOGS, WEAK],
    ),
    "older manifests": (
        [
            *("/adapter", "--secure-port={port}", "--tls-cert-file={certificate}", "--tls-private-key-file={key}"),
            *("--logtostderr=true", "--prometheus-url={prometheus}", "--metrics-relist-interval=1m", "--v=10"),
            "--config={config}",
        ],
        [LOGS, A_WORD],
    ),
    "chart": (
        [
            *("/adapter", "--secure-port={port}", "--cert-dir={folder}/cert", "--logtostderr=true"),
            *("--prometheus-url={prometheus}", "--metrics-relist-interval=1m", "--v=4", "--config={config}"),
        ],
        [LOGS, A_WORD],
    ),
    "chart with tls.enable and the extraArguments of its values": (
        [
            *("/adapter", "--secure-port={port}", "--tls-cert-file={certificate}", "--tls-private-key-file={key}"),
            *("--cert-dir={folder}/cert", "--logtostderr=true", "--prometheus-url={prometheus}"),
            *("--metrics-relist-interval=1m", "--v=4", "--config={config}"),
            *("--tls-private-key-file={key}", "--tls-cert-file={certificate}"),
        ],
        [LOGS, A_WORD],
    ),
    "README": (
        [
            *("--lister-kubeconfig={kubeconfig}", "--metrics-relist-interval=10m", "--metrics-max-age=10m"),
            *("--prometheus-url={prometheus}", "-c", "{config}", "--v=6", "--secure-port={port}"),
            "--cert-dir={folder}/cert",
        ],
        [],
    ),
}
"""The words of each command line, and the warnings that they cause, by where the command line is from."""


@pytest.mark.parametrize("whose", LINES)
def test_a_prometheus_adapter_command_line_works_unchanged(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, whose: str
) -> None:
    (tmp_path / "config.yaml").write_text(RULES)
    with FakeApiServer() as cluster:
        publish_front_proxy(cluster, trust)
        kubeconfig = str(cluster.kubeconfig(tmp_path / "kubeconfig"))
        here = {
            "folder": str(tmp_path),
            "config": str(tmp_path / "config.yaml"),
            "certificate": str(trust.server.certificate_file),
            "key": str(trust.server.key_file),
            "kubeconfig": kubeconfig,
            "prometheus": f"{prometheus.url}/",
            "port": str(free_port()),
        }
        words, warnings = LINES[whose]
        names = ("LISTER_KUBECONFIG", "AUTHENTICATION_KUBECONFIG", "AUTHORIZATION_KUBECONFIG")
        environment = {f"TIDEWATCH_FLAG_{name}": kubeconfig for name in names} | {
            "TIDEWATCH_FLAG_BIND_ADDRESS": "127.0.0.1",
            "TIDEWATCH_FLAG_PLAIN_BIND_ADDRESS": "127.0.0.1:0",
        }
        command = ["serve", *(word.format(**here) for word in words)]
        with forked.start(
            forked.ADAPTER, *command, log_path=tmp_path / "log", name="adapter", environment=environment
        ) as process:
            adapter = Adapter(process, trust)
            adapter.wait_for(" serving address=")
            eventually(lambda: adapter.plain("/readyz").status == 200)
            assert len(adapter.said(" WARNING ")) == len(warnings), adapter.log
            for warning in warnings:
                assert len(adapter.said(f" WARNING .*{warning}")) == 1
            process.kill()


@pytest.mark.parametrize(
    ("flags", "warnings"),
    [
        ([], ()),
        (["--tls-min-version=VersionTLS12"], ()),
        (["--tls-min-version=VersionTLS10"], ("--tls-min-version=VersionTLS10: TLS 1.2 is the lowest",)),
        (["--tls-min-version=VersionTLS11"], ("--tls-min-version=VersionTLS11: TLS 1.2 is the lowest",)),
        (
            ["--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"],
            ("TLS_RSA_WITH_RC4_128_SHA; since no other suite of TLS 1.2 is named, OpenSSL's default is used",),
        ),
        (["surplus", "--", "--more"], ("2 words that are not flags",)),
    ],
)
def test_flags_that_are_not_followed_exactly_are_one_warning_each(
    tmp_path: Path, trust: Trust, flags: list[str], warnings: tuple[str, ...]
) -> None:
    line = [*serving_flags(tmp_path, "http://127.0.0.1:9", RULES, {}), *trust.flags(), *flags]
    settings = serve_settings(parse_flags(SERVE, line, {}))
    assert len(settings.warnings) == len(warnings)
    assert all(words in warning for words, warning in zip(warnings, settings.warnings, strict=True))
    assert settings.server.tls is not None
    assert settings.server.tls.min_version.name == "TLSv1_2"


def test_a_metrics_max_age_of_0_is_the_relist_interval(tmp_path: Path, trust: Trust) -> None:
    line = [*serving_flags(tmp_path, "http://127.0.0.1:9", RULES, {}), *trust.flags()]
    line += ["--metrics-relist-interval=90s", "--metrics-max-age=0"]
    assert serve_settings(parse_flags(SERVE, line, {})).readings.metrics_max_age_seconds == 90


def test_words_that_are_not_flags_are_not_shown_in_warnings(tmp_path: Path, trust: Trust) -> None:
    """The shell splits a header that is written without quotes, and its second half is the secret."""
    line = [*serving_flags(tmp_path, "http://127.0.0.1:9", RULES, {}), *trust.flags()]
    line += ["--prometheus-header=Authorization=Bearer", "s3cr3t"]
    assert "s3cr3t" not in str(serve_settings(parse_flags(SERVE, line, {})).warnings)
