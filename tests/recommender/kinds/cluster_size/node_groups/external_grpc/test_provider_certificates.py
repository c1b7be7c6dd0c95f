"""Certificates for the connection to a provider: verified, replaced while it runs, and unusable for a while."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.machine.certificates import Authority
from recommender.kinds.cluster_size.node_groups.external_grpc.certificate_files import CertificateFilesError
from recommender.kinds.cluster_size.node_groups.external_grpc.channel import CallError
from recommender.kinds.cluster_size.node_groups.external_grpc.provider import ExternalGrpcProvider
from tests.recommender.kinds.cluster_size.node_groups.external_grpc.harnesses import settings, two_groups
from tests.support.grpc_provider import GrpcProvider

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("provider"))


def test_certificates_of_both_sides_are_verified(authority: Authority, tmp_path: Path) -> None:
    server, client = authority.server(), authority.client("tidewatch")
    foreign = Authority(tmp_path / "others").client("tidewatch")
    provider = GrpcProvider(*two_groups())
    address = provider.start((server.certificate_file, server.key_file), server.ca_file)
    mutual = replace(
        settings(address, 30.0), ca_file=server.ca_file, cert_file=client.certificate_file, key_file=client.key_file
    )
    known = ExternalGrpcProvider(mutual)
    known.refresh()
    assert len(known.node_groups()) == 2
    known.close()
    wrong = [
        replace(mutual, cert_file=None, key_file=None),
        replace(mutual, cert_file=foreign.certificate_file, key_file=foreign.key_file),
        replace(mutual, ca_file=foreign.ca_file),
        settings(address),
    ]
    for one in wrong:
        unknown = ExternalGrpcProvider(replace(one, timeout_seconds=5.0))
        with pytest.raises(CallError, match=r"Refresh: (UNAVAILABLE|DEADLINE_EXCEEDED|CANCELLED)"):
            unknown.refresh()
        unknown.close()
    provider.stop()
    assert provider.made("Refresh") == ["Refresh"], "clients with other certificates are refused"


def test_a_replaced_certificate_is_reloaded(authority: Authority, tmp_path: Path) -> None:
    server, client = authority.server(), authority.client("tidewatch")
    files = {name: tmp_path / name for name in ("ca", "cert", "key")}
    provider = GrpcProvider(*two_groups())
    address = provider.start((server.certificate_file, server.key_file), server.ca_file)
    stated = replace(settings(address, 30.0), ca_file=files["ca"], cert_file=files["cert"], key_file=files["key"])
    found = ExternalGrpcProvider(stated)
    files["ca"].write_bytes(server.ca_file.read_bytes())
    for pair in (Authority(tmp_path / "others").client("tidewatch"), client):
        files["cert"].write_bytes(pair.certificate_file.read_bytes())
        files["key"].write_bytes(pair.key_file.read_bytes())
        try:
            found.refresh()
            has_answered = True
        except CallError:
            has_answered = False
        assert has_answered == (pair is client)
    found.close()
    provider.stop()


def _half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:200])


def _make_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("ca", _half, "PEM"),
        ("cert", _half, "PEM"),
        ("key", _half, "PEM"),
        ("cert", Path.unlink, "No such file"),
        ("key", _make_fifo, "not a regular file"),
        ("key", lambda file: file.write_bytes(file.with_name("other").read_bytes()), "KEY_VALUES_MISMATCH"),
    ],
)
def test_files_that_cannot_be_used_leave_the_connection_as_it_is(
    authority: Authority,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    spoil: Callable[[Path], object],
    reason: str,
) -> None:
    server, client = authority.server(), authority.client("tidewatch")
    files = {each: tmp_path / each for each in ("ca", "cert", "key", "other")}
    sources = (server.ca_file, client.certificate_file, client.key_file, authority.client("other").key_file)
    for file, source in zip(files.values(), sources, strict=True):
        file.write_bytes(source.read_bytes())
    provider = GrpcProvider(*two_groups())
    address = provider.start((server.certificate_file, server.key_file), server.ca_file)
    stated = replace(settings(address, 30.0), ca_file=files["ca"], cert_file=files["cert"], key_file=files["key"])
    found = ExternalGrpcProvider(stated)
    found.refresh()
    spoil(files[name])
    for _ in range(2):
        found.refresh()
    found.close()
    provider.stop()
    assert len(provider.made("Refresh")) == 3
    assert re.search(reason, caplog.text), caplog.text
    assert caplog.text.count("the last good version stays in use") == 1
    assert "PRIVATE KEY" not in caplog.text


def test_files_that_cannot_be_used_at_the_start_are_named(tmp_path: Path) -> None:
    ca = tmp_path / "ca"
    unknown = ExternalGrpcProvider(replace(settings("localhost:1"), ca_file=ca))
    with pytest.raises(CertificateFilesError, match=re.escape(f"({ca}): No such file or directory: correct caFile")):
        unknown.refresh()
    ca.touch()
    with pytest.raises(CertificateFilesError, match="no certificate"):
        unknown.refresh()
