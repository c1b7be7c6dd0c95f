"""A running `serve` while the certificate of Prometheus, or its own, has expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demo.machine.certificates import Authority
from demo.machine.files import replace_file
from tests.adapter.commands.harness import SHOP
from tests.support.recording_proxy import recording_proxy
from tests.support.serving import Trust, eventually
from tests.support.tls_servers import expired, show, tls_of

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.certificates import KeyPair
    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Caller

WEB = {"labelSelector": "app=web"}
REFRESHED = ("--max-answer-age=3s", "--refresh-interval=1s")


def status(caller: Caller) -> int:
    return caller.pods("open_connections", **WEB).status


def test_values_are_refused_while_a_certificate_is_expired_and_the_error_names_it(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    authority = Authority(tmp_path / "ca", "ca of prometheus")
    context = tls_of(authority.server(), authority.ca_file)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def use_client(pair: KeyPair) -> None:
        replace_file(key, pair.key_file.read_text())
        replace_file(certificate, pair.certificate_file.read_text())

    use_client(authority.client("tidewatch"))
    with recording_proxy(prometheus.url, context) as proxy:
        flags = (
            f"--prometheus-url={proxy.url}",
            f"--prometheus-ca-file={authority.ca_file}",
            f"--prometheus-client-tls-cert-file={certificate}",
            f"--prometheus-client-tls-key-file={key}",
            *REFRESHED,
        )
        with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter, adapter.caller() as caller:

            def refused(words: str) -> None:
                eventually(lambda: status(caller) == 503)
                assert words in caller.pods("open_connections", **WEB).message
                assert [adapter.plain(path).status for path in ("/livez", "/readyz")] == [200, 200]

            eventually(lambda: status(caller) == 200)
            show(context, authority.server(validity=expired()))
            refused("its certificate is not accepted: certificate has expired")
            show(context, authority.server())
            eventually(lambda: status(caller) == 200)
            use_client(authority.client("tidewatch", validity=expired()))
            refused("does not accept this program's client certificate: certificate expired")
            use_client(authority.client("tidewatch"))
            eventually(lambda: status(caller) == 200)
