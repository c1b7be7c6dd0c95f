"""A serving certificate that has expired or is not valid yet is logged; its dates are in metrics of each program."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from adapter.commands.followed_certificate import report_dates
from adapter.foundation.service.runtime.logs import StateLog
from adapter.metrics.identity.certificates.self_signed import ServingCertificate
from demo.machine.certificates import Authority
from tests.adapter.commands.nodes.harness import running_nodes
from tests.support.serving import eventually
from tests.support.tls_servers import expired

NOT_AFTER = r"(?m)^tidewatch_adapter_serving_certificate_not_after_timestamp_seconds (\S+)$"


@pytest.mark.parametrize(
    ("starts_in_days", "ends_in_days", "words"),
    [
        (-9, -1, "has expired, so clients refuse this server: renew it"),
        (1, 9, "is not valid yet, so clients refuse"),
    ],
)
def test_an_expired_or_not_yet_valid_certificate_is_logged_once_with_the_repair(
    caplog: pytest.LogCaptureFixture, starts_in_days: int, ends_in_days: int, words: str
) -> None:
    now, state = datetime(2026, 11, 28, tzinfo=UTC), StateLog(logging.getLogger("tests"))
    file = Path("tls.crt")
    dates = (now + timedelta(days=days) for days in (starts_in_days, ends_in_days))
    found = ServingCertificate(file, file, None, *dates)
    report_dates(found, now, state)
    report_dates(found, now, state)
    (message,) = caplog.messages
    assert message.startswith("tls.crt: the serving certificate ")
    assert words in message


def test_a_renewed_certificate_is_logged_as_valid_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now, state, file = datetime(2026, 11, 28, tzinfo=UTC), StateLog(logging.getLogger("tests")), Path("tls.crt")
    day = timedelta(days=1)
    for until in (now - day, now + day, now + day):
        report_dates(ServingCertificate(file, file, None, now - 9 * day, until), now, state)
    assert caplog.messages[1:] == ["the serving certificate is valid now"]


def test_nodes_names_an_expired_certificate_and_exposes_its_dates(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    pair = authority.server(validity=expired())
    flags = (
        "--prometheus-url=http://127.0.0.1:9",
        f"--tls-cert-file={pair.certificate_file}",
        f"--tls-private-key-file={pair.key_file}",
        "--tls-optional",
    )
    end = x509.load_pem_x509_certificate(pair.certificate_file.read_bytes()).not_valid_after_utc.timestamp()
    with running_nodes(tmp_path, *flags) as nodes:
        eventually(lambda: f"{pair.certificate_file}: the serving certificate has expired" in nodes.log)
        eventually(lambda: [*map(float, re.findall(NOT_AFTER, nodes.ask("/metrics").text))] == [end])
