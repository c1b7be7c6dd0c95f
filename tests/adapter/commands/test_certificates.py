"""The certificate that the program presents: given as files and renewed, or made by the program itself."""

from __future__ import annotations

import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from demo.machine.files import replace_file
from tests.adapter.commands.harness import OBJECTS, RULES, SHOP
from tests.support.caller import PATIENCE_SECONDS, Caller
from tests.support.forked import run
from tests.support.serving import Adapter, Trust, eventually, running_adapter, serving_flags

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

WEB = {"labelSelector": "app=web"}


def presented(adapter: Adapter, context: ssl.SSLContext, name: str = "localhost") -> bytes:
    """Return the certificate that is presented to a client which trusts `context`."""
    tcp = socket.create_connection(("127.0.0.1", adapter.port), timeout=PATIENCE_SECONDS)
    with context.wrap_socket(tcp, server_hostname=name) as sock:
        certificate = sock.getpeercert(binary_form=True)
    assert certificate
    return certificate


def test_a_generated_certificate_is_verified_by_its_own_ca_and_reused(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    folder = tmp_path / "certificates"
    flags = ("--tls-cert-file=", "--tls-private-key-file=", f"--cert-dir={folder}")
    certificates: list[bytes] = []
    for start in ("first", "second"):
        with SHOP.adapter(tmp_path / start, trust, prometheus, *flags) as adapter:
            said = adapter.said("the serving certificate is self-signed")[-1]
            assert f"ca_file={folder / 'tidewatch-ca.crt'}" in said
            context = ssl.create_default_context(cafile=folder / "tidewatch-ca.crt")
            context.load_cert_chain(trust.front_proxy.certificate_file, trust.front_proxy.key_file)
            names = ("localhost", "127.0.0.1", socket.gethostname())
            certificates.extend(presented(adapter, context, name) for name in names)
            with Caller(adapter.port, context) as caller:
                assert caller.pods("open_connections", **WEB).status == 200
    assert len(set(certificates)) == 1
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        "apiserver.crt": 0o644,
        "apiserver.key": 0o600,
        "tidewatch-ca.crt": 0o644,
        "tidewatch-ca.key": 0o600,
    }


@pytest.mark.parametrize("is_given", [False, True])
def test_the_dates_of_the_certificate_are_exposed_as_metrics(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, *, is_given: bool
) -> None:
    own = ("--tls-cert-file=", "--tls-private-key-file=", f"--cert-dir={tmp_path / 'certificates'}")
    with SHOP.adapter(tmp_path, trust, prometheus, *(() if is_given else own)) as adapter:
        authority = None if is_given else ssl.create_default_context(cafile=tmp_path / "certificates/tidewatch-ca.crt")
        certificate = x509.load_der_x509_certificate(presented(adapter, authority or trust.context()))
        for name, date in (
            ("not_before", certificate.not_valid_before_utc),
            ("not_after", certificate.not_valid_after_utc),
        ):
            metric = f"tidewatch_adapter_serving_certificate_{name}_timestamp_seconds"
            assert eventually(partial(adapter.metric, metric)) == date.timestamp()


def test_the_certificate_is_created_below_the_working_directory_by_default(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    flags = ("--tls-cert-file=", "--tls-private-key-file=")
    with running_adapter(
        tmp_path, trust, *flags, prometheus_url=prometheus.url, rules=RULES, objects=OBJECTS, work_in=tmp_path
    ) as adapter:
        authority = tmp_path / "apiserver.local.config/certificates/tidewatch-ca.crt"
        assert presented(adapter, ssl.create_default_context(cafile=authority))


def test_a_folder_that_cannot_be_written_is_wrong_usage(tmp_path: Path, trust: Trust) -> None:
    (tmp_path / "file").touch()
    flags = ("--tls-cert-file=", "--tls-private-key-file=", f"--cert-dir={tmp_path / 'file' / 'folder'}")
    ended = run("serve", *serving_flags(tmp_path, "http://127.0.0.1:9", RULES, {}), *trust.flags(), *flags)
    assert ended.code == 2
    assert "cannot store a serving certificate there" in ended.error
    assert ended.error.count("\n") == 1


def test_renewed_certificates_are_presented_to_new_connections_and_broken_ones_are_not(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    first, second = trust.serving.server(), trust.serving.server()
    certificate_file, key_file = tmp_path / "tls.crt", tmp_path / "tls.key"
    replace_file(key_file, first.key_file.read_text())
    replace_file(certificate_file, first.certificate_file.read_text())
    flags = (f"--tls-cert-file={certificate_file}", f"--tls-private-key-file={key_file}")
    with (
        SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter,
        adapter.caller() as old,
    ):

        def reloads(result: str) -> float:
            return adapter.metric("tidewatch_adapter_tls_reloads_total", result=result)

        context = trust.context()
        before = presented(adapter, context)
        assert old.pods("open_connections", **WEB).status == 200
        replace_file(certificate_file, "no certificate")
        eventually(lambda: presented(adapter, context) == before and reloads("failure"))
        replace_file(key_file, second.key_file.read_text())
        replace_file(certificate_file, second.certificate_file.read_text())
        eventually(lambda: presented(adapter, context) != before)
        assert reloads("success") == 1
        assert old.pods("open_connections", **WEB).status == 200


def test_a_front_proxy_with_a_rotated_ca_is_served(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess) -> None:
    """While kube-apiserver's front-proxy CA is rotated, the bundle holds the old CA and the new one."""
    bundle = tmp_path / "front-proxies.crt"
    replace_file(bundle, trust.front_proxies.ca_file.read_text())
    renewed = trust.other_authority.client("front-proxy-client")
    with SHOP.adapter(tmp_path, trust, prometheus, f"--requestheader-client-ca-file={bundle}") as adapter:

        def status() -> int:
            try:
                with adapter.caller(renewed) as caller:
                    return caller.pods("open_connections", **WEB).status
            except (ssl.SSLError, ConnectionError):
                return 0

        assert status() == 0
        replace_file(bundle, trust.front_proxies.ca_file.read_text() + trust.other_authority.ca_file.read_text())
        eventually(lambda: status() == 200)
        with adapter.caller() as caller:
            assert caller.pods("open_connections", **WEB).status == 200
        replace_file(bundle, trust.other_authority.ca_file.read_text())

        def former_is_refused() -> bool:
            try:
                with adapter.caller() as caller:
                    return caller.pods("open_connections", **WEB).status in {401, 403}
            except (ssl.SSLError, ConnectionError):
                return True

        eventually(former_is_refused)
        assert status() == 200
