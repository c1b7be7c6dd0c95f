"""A certificate is used only with the authority that signed it; one file passes both to the TLS layer."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from adapter.metrics.identity.certificates.certificate_file import read_kept, write_kept
from adapter.metrics.identity.certificates.generations import (
    Generation,
    GenerationError,
    bundle_pem,
    make_generation,
    read_authorities,
    read_generation,
)
from adapter.metrics.identity.certificates.issuing import certificate_pem, key_pem

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LIFE = timedelta(days=90)
NAME = "tidewatch.monitoring.svc"


@pytest.fixture(scope="module")
def generation() -> Generation:
    return make_generation([NAME], NOW, LIFE)


@pytest.mark.parametrize(
    ("after", "due", "expired"),
    [
        (timedelta(minutes=-59), False, False),
        (timedelta(minutes=-61), True, False),
        (timedelta(), False, False),
        (timedelta(days=59, hours=23), False, False),
        (timedelta(days=60, hours=1), True, False),
        (timedelta(days=90), True, True),
    ],
)
def test_a_certificate_is_due_for_rotation_at_two_thirds_of_its_life(
    generation: Generation,
    after: timedelta,
    due: bool,  # noqa: FBT001 - a table
    expired: bool,  # noqa: FBT001 - likewise
) -> None:
    assert (generation.is_due(NOW + after), generation.is_expired(NOW + after)) == (due, expired)


def test_the_authority_ends_with_its_certificate(generation: Generation) -> None:
    assert generation.authority.not_valid_after_utc == generation.certificate.not_valid_after_utc == NOW + LIFE


def test_a_generation_is_read_back_from_its_pem_texts(generation: Generation) -> None:
    texts = certificate_pem(generation.certificate), key_pem(generation.key)
    other = make_generation([NAME], NOW, LIFE).authority
    authorities = read_authorities(bundle_pem([other, generation.authority, other]))
    assert len(authorities) == 2
    assert read_generation(*texts, authorities) == generation


def test_mismatched_texts_are_refused_without_being_quoted(generation: Generation) -> None:
    certificate, key = certificate_pem(generation.certificate), key_pem(generation.key)
    rsa_key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    other_key = key_pem(ec.generate_private_key(ec.SECP256R1()))
    good = [generation.authority]
    for arguments, message in (
        ((b"", key, good), "no certificate"),
        ((certificate, b"", good), "no unencrypted private key"),
        ((certificate, rsa_key, good), "not the certificate's"),
        ((certificate, other_key, good), "not the certificate's"),
        ((certificate, key, []), "authority that signed the certificate is missing"),
    ):
        with pytest.raises(GenerationError, match=message) as error:
            read_generation(*arguments)
        assert "BEGIN" not in str(error.value)


def test_the_key_is_not_in_the_repr(generation: Generation) -> None:
    assert "key" not in repr(generation)


class TestTheFile:
    def test_the_file_is_readable_by_its_owner_alone_and_usable_for_tls(
        self, tmp_path: Path, generation: Generation
    ) -> None:
        file = tmp_path / "new" / "serving.pem"
        write_kept(file, generation)
        assert file.stat().st_mode & 0o777 == 0o600
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(file, file)
        assert read_kept(file) == generation

    def test_a_changed_certificate_replaces_the_whole_file(self, tmp_path: Path, generation: Generation) -> None:
        file = tmp_path / "serving.pem"
        write_kept(file, generation)
        inode = file.stat().st_ino
        write_kept(file, make_generation([NAME], NOW, LIFE))
        assert file.stat().st_ino != inode
        assert [path.name for path in tmp_path.iterdir()] == ["serving.pem"]

    @pytest.mark.parametrize("content", [None, b"", b"broken"])
    def test_an_unusable_file_is_treated_as_missing(self, tmp_path: Path, content: bytes | None) -> None:
        file = tmp_path / "serving.pem"
        if content is not None:
            file.write_bytes(content)
        assert read_kept(file) is None
