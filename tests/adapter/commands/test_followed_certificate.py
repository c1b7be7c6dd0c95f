"""A serving certificate that has expired or is not valid yet is logged; its dates are in metrics of each program."""

from __future__ import annotations

import errno
import logging
import os
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from cryptography import x509
from prometheus_client import CollectorRegistry

from adapter.commands.followed_certificate import follow_certificate, report_dates
from adapter.foundation.service.runtime.logs import StateLog
from adapter.metrics.identity.certificates import self_signed
from adapter.metrics.identity.certificates.issuing import SERVING_LIFE
from adapter.metrics.identity.certificates.self_signed import ServingCertificate, made_certificate
from demo.machine.certificates import Authority
from tests.adapter.commands.nodes.harness import running_nodes
from tests.support.serving import eventually
from tests.support.tls_servers import expired

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.service.server.context import WorkerContext

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


class Worker:
    """A worker whose only task runs when the test says so."""

    def __init__(self) -> None:
        self.registry, self.tasks = CollectorRegistry(), self

    def periodic(self, name: str, action: Callable[[], None], **seconds: float) -> None:
        del name, seconds
        self.look = action


def test_a_folder_that_cannot_be_written_any_more_is_logged_with_its_repair_and_the_certificate_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    made = partial(made_certificate, tmp_path, (), hostname="here")
    begun = datetime.now(tz=UTC) - SERVING_LIFE
    made(now=begun - timedelta(days=1))
    worker, times = Worker(), [begun]
    follow_certificate(lambda: made(now=times[0]), cast("WorkerContext", worker))
    worker.look()

    def refuse(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(self_signed, "replace_file", refuse)
        times[0] = datetime.now(tz=UTC)
        worker.look()
        worker.look()
    worker.look()
    expired_before, failed, *ended = caplog.messages
    assert "has expired" in expired_before
    assert failed.startswith("the former serving certificate stays in use")
    assert "No space left on device" in failed
    assert "set --cert-dir to a writable folder" in failed
    assert ended == ["the serving certificate can be renewed again", "the serving certificate is valid now"]


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
