from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.certificates.issuing import names_of
from adapter.metrics.identity.certificates.self_signed import ServingCertificate, given_certificate, made_certificate
from demo.machine.certificates import Authority, Validity
from tests.support.validity import of_yesterday

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(tz=UTC)
SERVICE = "tidewatch.monitoring.svc"


def made(folder: Path, *names: str, days: float = 0) -> ServingCertificate:
    return made_certificate(folder, names or [SERVICE], hostname="Host-1", now=NOW + timedelta(days=days))


def leaf(certificate: ServingCertificate) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate.certificate_file.read_bytes())


def handshake(server: ServingCertificate, trusted: Path, name: str) -> None:
    """Do a TLS handshake in memory; raise SSLError if the client does not trust the server under that name."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(server.certificate_file, server.key_file)
    trusting = ssl.create_default_context(cafile=trusted)
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    other = serving.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, other):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
    client.do_handshake()


class TestSelfMade:
    @pytest.mark.parametrize("name", [SERVICE, "host-1", "localhost", "127.0.0.1", "::1"])
    def test_clients_that_trust_the_authority_trust_the_server_under_all_its_names(
        self, tmp_path: Path, name: str
    ) -> None:
        certificate = made(tmp_path)
        assert certificate.ca_file is not None
        handshake(certificate, certificate.ca_file, name)

    def test_clients_refuse_another_name(self, tmp_path: Path) -> None:
        certificate = made(tmp_path)
        assert certificate.ca_file is not None
        with pytest.raises(ssl.SSLCertVerificationError, match="not valid for 'elsewhere'"):
            handshake(certificate, certificate.ca_file, "elsewhere")

    def test_files_have_the_names_that_cert_dir_promises_and_keys_are_private(self, tmp_path: Path) -> None:
        certificate = made(tmp_path)
        assert {file.name for file in tmp_path.iterdir()} == {
            "apiserver.crt",
            "apiserver.key",
            "tidewatch-ca.crt",
            "tidewatch-ca.key",
        }
        assert stat.S_IMODE(certificate.key_file.stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "tidewatch-ca.key").stat().st_mode) == 0o600

    def test_the_certificate_is_valid_for_one_year_and_its_authority_for_ten(self, tmp_path: Path) -> None:
        certificate = made(tmp_path)
        assert certificate.ca_file is not None
        authority = x509.load_pem_x509_certificate(certificate.ca_file.read_bytes())
        assert certificate.not_after - NOW == pytest.approx(timedelta(days=365), abs=timedelta(seconds=1))
        assert authority.not_valid_after_utc - NOW == pytest.approx(timedelta(days=3650), abs=timedelta(seconds=1))

    def test_a_restart_reuses_the_existing_certificate(self, tmp_path: Path) -> None:
        first = leaf(made(tmp_path))
        assert leaf(made(tmp_path, days=200)) == first

    def test_a_certificate_with_a_third_of_its_life_left_is_renewed_by_the_same_authority(self, tmp_path: Path) -> None:
        first = made(tmp_path)
        assert first.ca_file is not None
        before, authority = leaf(first), first.ca_file.read_bytes()
        renewed = made(tmp_path, days=250)
        assert leaf(renewed) != before
        assert first.ca_file.read_bytes() == authority
        assert renewed.not_after > first.not_after

    def test_changed_names_make_a_new_certificate_by_the_same_authority(self, tmp_path: Path) -> None:
        first = made(tmp_path)
        assert first.ca_file is not None
        authority = first.ca_file.read_bytes()
        second = made(tmp_path, "new.monitoring.svc", "10.1.2.3")
        assert names_of(leaf(second)) == {"new.monitoring.svc", "10.1.2.3", "host-1", "localhost", "127.0.0.1", "::1"}
        assert first.ca_file.read_bytes() == authority

    def test_an_authority_near_its_expiry_is_replaced_with_the_certificate(self, tmp_path: Path) -> None:
        first = made(tmp_path)
        assert first.ca_file is not None
        authority = first.ca_file.read_bytes()
        later = made(tmp_path, days=3000)
        assert first.ca_file.read_bytes() != authority
        assert leaf(later).issuer == x509.load_pem_x509_certificate(first.ca_file.read_bytes()).subject

    def test_a_machine_that_boots_in_1970_keeps_the_authority_that_clients_trust(self, tmp_path: Path) -> None:
        first = made(tmp_path)
        assert first.ca_file is not None
        before, authority = leaf(first), first.ca_file.read_bytes()
        boot = datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)
        made_certificate(tmp_path, [SERVICE], hostname="Host-1", now=boot)
        assert (leaf(made(tmp_path)), first.ca_file.read_bytes()) == (before, authority)

    def test_what_was_made_in_1970_is_replaced_once_the_clock_is_right(self, tmp_path: Path) -> None:
        boot = datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC)
        first = made_certificate(tmp_path, [SERVICE], hostname="Host-1", now=boot)
        assert made_certificate(tmp_path, [SERVICE], hostname="Host-1", now=boot).not_after == first.not_after
        again = made(tmp_path)
        assert again.ca_file is not None
        handshake(again, again.ca_file, SERVICE)

    def test_what_was_made_by_a_clock_that_was_ahead_is_replaced(self, tmp_path: Path) -> None:
        made(tmp_path, days=2)
        again = made(tmp_path)
        assert again.ca_file is not None
        handshake(again, again.ca_file, SERVICE)

    @pytest.mark.parametrize("file", ["apiserver.key", "tidewatch-ca.key", "tidewatch-ca.crt"])
    @pytest.mark.parametrize("content", [None, b"", b"broken"])
    def test_a_missing_or_broken_file_is_replaced(self, tmp_path: Path, file: str, content: bytes | None) -> None:
        made(tmp_path)
        if content is None:
            (tmp_path / file).unlink()
        else:
            (tmp_path / file).write_bytes(content)
        again = made(tmp_path)
        assert again.ca_file is not None
        handshake(again, again.ca_file, SERVICE)

    def test_a_certificate_that_does_not_match_its_key_is_replaced(self, tmp_path: Path) -> None:
        made(tmp_path / "a")
        made(tmp_path / "b")
        (tmp_path / "a" / "apiserver.key").replace(tmp_path / "b" / "apiserver.key")
        again = made(tmp_path / "b")
        assert again.ca_file is not None
        handshake(again, again.ca_file, SERVICE)

    def test_an_authority_key_of_another_kind_is_replaced(self, tmp_path: Path) -> None:
        made(tmp_path)
        key = rsa.generate_private_key(65537, 2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (tmp_path / "tidewatch-ca.key").write_bytes(pem)
        again = made(tmp_path)
        assert again.ca_file is not None
        handshake(again, again.ca_file, SERVICE)

    def test_a_folder_that_cannot_be_created_is_an_error_that_names_alternatives(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(IdentitySettingsError, match="--cert-dir to a writable folder, or set --tls-cert-file"):
            made(tmp_path / "file" / "certificates")


class TestForeignPairs:
    def test_a_foreign_pair_in_the_folder_is_used_and_not_changed(self, tmp_path: Path) -> None:
        put(Authority(tmp_path / "ca"), tmp_path)
        before = (tmp_path / "apiserver.crt").read_bytes()
        certificate = made(tmp_path)
        assert (certificate.certificate_file, certificate.ca_file) == (tmp_path / "apiserver.crt", None)
        assert certificate.certificate_file.read_bytes() == before

    def test_an_expired_foreign_pair_is_an_error_and_not_changed(self, tmp_path: Path) -> None:
        put(Authority(tmp_path / "ca"), tmp_path, of_yesterday())
        before = (tmp_path / "apiserver.crt").read_bytes()
        with pytest.raises(IdentitySettingsError, match="expired, and not made by this program"):
            made(tmp_path)
        assert (tmp_path / "apiserver.crt").read_bytes() == before

    def test_a_foreign_certificate_without_its_key_is_an_error(self, tmp_path: Path) -> None:
        put(Authority(tmp_path / "ca"), tmp_path)
        (tmp_path / "apiserver.key").unlink()
        with pytest.raises(IdentitySettingsError, match=r"apiserver\.key: cannot be read"):
            made(tmp_path)


class TestGiven:
    def test_a_given_pair_is_returned_unchanged(self, tmp_path: Path) -> None:
        pair = Authority(tmp_path, intermediate=True).server()
        certificate = given_certificate(pair.certificate_file, pair.key_file)
        assert (certificate.certificate_file, certificate.key_file) == (pair.certificate_file, pair.key_file)
        handshake(certificate, pair.ca_file, "localhost")

    def test_an_expired_pair_is_returned_with_its_expiry(self, tmp_path: Path) -> None:
        pair = Authority(tmp_path).server(validity=of_yesterday())
        assert given_certificate(pair.certificate_file, pair.key_file).not_after < datetime.now(tz=UTC)

    def test_a_certificate_and_another_key_are_an_error(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        with pytest.raises(IdentitySettingsError, match="not the key of"):
            given_certificate(authority.server().certificate_file, authority.server().key_file)

    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("server-1.crt", None, "cannot be read"),
            ("server-1.crt", b"", "no certificate in PEM"),
            ("server-1.key", None, "cannot be read"),
            ("server-1.key", b"secret", "not an unencrypted private key"),
        ],
    )
    def test_an_unusable_file_is_named(self, tmp_path: Path, file: str, content: bytes | None, message: str) -> None:
        pair = Authority(tmp_path).server()
        (tmp_path / file).unlink()
        if content is not None:
            (tmp_path / file).write_bytes(content)
        with pytest.raises(IdentitySettingsError, match=message) as error:
            given_certificate(pair.certificate_file, pair.key_file)
        assert file in str(error.value)
        assert "secret" not in str(error.value)


def put(authority: Authority, folder: Path, validity: Validity | None = None) -> None:
    pair = authority.server(validity=validity)
    pair.certificate_file.replace(folder / "apiserver.crt")
    pair.key_file.replace(folder / "apiserver.key")
