"""A running `nodes` while the certificate of Prometheus, or its own, has expired."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from demo.machine.certificates import Authority
from demo.machine.files import replace_file
from tests.adapter.commands.nodes.harness import OBJECTS, running_nodes, series_at
from tests.support.harnesses import prometheus_with
from tests.support.recording_proxy import recording_proxy
from tests.support.serving import eventually
from tests.support.tls_servers import expired, show, tls_of

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.certificates import KeyPair


def test_an_expired_certificate_is_logged_while_the_scheduler_still_gets_answers(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "ca of prometheus")
    context = tls_of(authority.server(), authority.ca_file)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def use_client(pair: KeyPair) -> None:
        replace_file(key, pair.key_file.read_text())
        replace_file(certificate, pair.certificate_file.read_text())

    use_client(authority.client("tidewatch"))
    with (
        prometheus_with(tmp_path / "prometheus", series_at(int(time.time()))) as prometheus,
        recording_proxy(prometheus.url, context) as proxy,
    ):
        flags = (
            f"--prometheus-url={proxy.url}",
            f"--prometheus-ca-file={authority.ca_file}",
            f"--prometheus-client-tls-cert-file={certificate}",
            f"--prometheus-client-tls-key-file={key}",
            "--refresh-interval=1s",
        )
        with running_nodes(tmp_path, *flags, objects=OBJECTS) as nodes:

            def refused(words: str) -> None:
                eventually(lambda: words in nodes.log)
                assert nodes.ask("/livez").status == 200
                assert nodes.prioritized(["node-1", "node-2"])[0].status == 200

            def answers_again(times: int) -> None:
                eventually(lambda: len(re.findall("newest samples of .* are available again", nodes.log)) >= times)

            nodes.watched()
            show(context, authority.server(validity=expired()))
            refused("its certificate is not accepted: certificate has expired")
            show(context, authority.server())
            answers_again(1)
            use_client(authority.client("tidewatch", validity=expired()))
            refused("it does not accept this program's client certificate: certificate expired")
            use_client(authority.client("tidewatch"))
            answers_again(2)
            assert "PRIVATE KEY" not in nodes.log
