"""The flags say which certificate is kept; the start waits for rights and for a server that becomes available late."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from adapter.commands.serve.certificates import KeptCertificate, first_certificate, keep_certificate, kept_certificate
from adapter.commands.serve.flags import SERVE
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.context import WorkerContext
from adapter.foundation.service.server.server_settings import ServerOptions
from adapter.metrics.identity.certificates import certificate_file
from adapter.metrics.identity.certificates.certificate_file import read_kept
from tests.adapter.metrics.identity.certificates.keeping_harness import (
    CUSTOM,
    EXTERNAL,
    SECRET,
    SERVICE,
    WANTED,
    apiservice,
)
from tests.support.apiserver_kinds import APISERVICES, SECRETS
from tests.support.object_apiserver import ObjectApiServer
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GOOD = (f"--serving-secret={SECRET}", f"--service={SERVICE}", f"--apiservice={CUSTOM}", f"--apiservice={EXTERNAL}")


def certificate_of(*flags: str) -> KeptCertificate | None:
    return kept_certificate(parse_flags(SERVE, ["--config=rules.yaml", *flags], {}))


class Time:
    """A clock that moves only during a sleep; something may happen meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.meanwhile: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()

    def clock(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def cluster() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as server:
        for name in (CUSTOM, EXTERNAL):
            server.objects.put(APISERVICES, "", name, apiservice(name))
        yield server


@pytest.fixture
def kept(cluster: ObjectApiServer, tmp_path: Path) -> KeptCertificate:
    config = cluster.kubeconfig(tmp_path / "config")
    found = certificate_of(*GOOD, f"--kubeconfig={config}", f"--cert-dir={tmp_path / 'certificates'}")
    assert found is not None
    return found


class TestFlags:
    def test_the_flags_determine_the_kept_certificate(self) -> None:
        found = certificate_of(*GOOD, "--cert-dir=/c", "--lister-kubeconfig=/k")
        assert found is not None
        assert (found.wanted, str(found.file), str(found.cluster.kubeconfig)) == (WANTED, "/c/serving.pem", "/k")

    def test_without_a_secret_flag_no_certificate_is_kept(self) -> None:
        assert certificate_of() is None

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (GOOD[:1], "needs --service=NAMESPACE/NAME and --apiservice=NAME"),
            (GOOD[:2], "needs --service=NAMESPACE/NAME and --apiservice=NAME"),
            (GOOD[1:2], "--service has no effect without --serving-secret"),
            (GOOD[2:3], "--apiservice has no effect without --serving-secret"),
            (("--serving-certificate-life=1h",), "has no effect without --serving-secret"),
            ((*GOOD, "--tls-cert-file=/a", "--tls-private-key-file=/b"), "cannot be combined"),
            ((*GOOD, "--serving-certificate-life=30s"), "write at least 60 s"),
            ((*GOOD, "--serving-secret=only-a-name"), "'only-a-name' is not NAMESPACE/NAME"),
            ((*GOOD, "--service=Upper/name"), "'Upper/name' is not NAMESPACE/NAME"),
            ((*GOOD, "--service=a/b/c"), "'a/b/c' is not NAMESPACE/NAME"),
            ((*GOOD, "--apiservice=custom"), "not the name of an APIService"),
            ((*GOOD, "--apiservice=a.b/../c"), "not the name of an APIService"),
            ((*GOOD, "--cert-dir="), "--cert-dir is empty"),
        ],
    )
    def test_contradictory_or_invalid_flags_are_refused(self, flags: tuple[str, ...], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            certificate_of(*flags)


class TestTheFirstCertificate:
    def test_the_certificate_exists_once_the_apiservices_trust_it(
        self, kept: KeptCertificate, cluster: ObjectApiServer
    ) -> None:
        certificate = first_certificate(kept)
        assert certificate.certificate_file == certificate.key_file == kept.file
        shown = read_kept(kept.file)
        assert shown
        assert shown.certificate.not_valid_after_utc == certificate.not_after
        for name in (CUSTOM, EXTERNAL):
            assert cluster.objects.get_without_rights(APISERVICES, "", name)["spec"]["caBundle"]

    def test_the_start_waits_for_rights_that_are_granted_late(
        self, kept: KeptCertificate, cluster: ObjectApiServer
    ) -> None:
        time = Time()
        cluster.objects.deny("get", "secrets")
        time.meanwhile = lambda: cluster.objects.allow("get", "secrets")
        assert first_certificate(kept, sleep=time.sleep, clock=time.clock).certificate_file.exists()
        assert 0 < time.now < 30

    def test_the_start_waits_for_an_api_server_that_is_down(
        self, kept: KeptCertificate, cluster: ObjectApiServer
    ) -> None:
        time = Time()
        cluster.stop()
        looks: list[None] = []

        def start_once() -> None:
            if not looks:
                cluster.start()
            looks.append(None)

        time.meanwhile = start_once
        assert first_certificate(kept, sleep=time.sleep, clock=time.clock).certificate_file.exists()

    @pytest.mark.parametrize("verb", ["get", "create"])
    def test_missing_rights_end_the_program_and_no_other_certificate_is_made(
        self, kept: KeptCertificate, cluster: ObjectApiServer, verb: str
    ) -> None:
        time = Time()
        cluster.objects.deny(verb, "secrets")
        with pytest.raises(StartError, match=f"cannot {verb} resource .*: grant "):
            first_certificate(kept, sleep=time.sleep, clock=time.clock)
        assert not kept.file.exists()

    def test_a_secret_that_another_program_made_ends_the_program(
        self, kept: KeptCertificate, cluster: ObjectApiServer
    ) -> None:
        time = Time()
        cluster.objects.put(SECRETS, SECRET.namespace, SECRET.name, {"data": {"tls.crt": "Zm9v"}})
        with pytest.raises(StartError, match="not made by this program"):
            first_certificate(kept, sleep=time.sleep, clock=time.clock)

    def test_the_start_waits_for_an_apiservice_that_cannot_be_patched_and_then_logs_it(
        self, kept: KeptCertificate, cluster: ObjectApiServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        time = Time()
        cluster.objects.deny("patch", "apiservices")
        assert first_certificate(kept, sleep=time.sleep, clock=time.clock).certificate_file.exists()
        assert time.now > 20
        assert caplog.text.count(f"apiservice {CUSTOM}: it cannot be patched") == 1, "said once, not at each look"

    def test_a_folder_that_cannot_be_written_ends_the_program(self, kept: KeptCertificate) -> None:
        kept.file.parent.touch()
        with pytest.raises(StartError, match="set --cert-dir to a writable folder"):
            first_certificate(kept)


@pytest.fixture
def context() -> Iterator[WorkerContext]:
    address = Address("127.0.0.1", 0)
    options = ServerOptions(
        program="example",
        version="1",
        metrics_prefix="example",
        address=address,
        tls=None,
        plain_address=address,
    )
    worker = WorkerContext(options, address, None)
    yield worker
    worker.tasks.stop(5.0)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_folder_that_cannot_be_written_any_more_is_logged_with_its_repair_until_it_can(
    kept: KeptCertificate,
    context: WorkerContext,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    caplog.set_level(logging.INFO)
    first_certificate(kept)
    kept.file.unlink()

    def refuse(*_arguments: object, **_more: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as full:
        full.setattr(certificate_file, "replace_file", refuse)
        keep_certificate(replace(kept, life=timedelta(seconds=60)), context)
        until(lambda: f"{kept.file}: cannot be written ({os.strerror(number)})" in caplog.text)
    until(lambda: f"{kept.file}: resolved" in caplog.text)
    assert caplog.text.count("cannot be written") == 1
    assert "--cert-dir" in caplog.text
    assert "Traceback" not in caplog.text
    assert read_kept(kept.file) is not None
