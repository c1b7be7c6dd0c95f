from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from adapter.foundation.files.credential_files import LOOK_SECONDS
from adapter.metrics.identity.authentication import NO_FRONT_PROXY, ONLY_THE_FRONT_PROXY, AccessControl
from adapter.metrics.identity.caller_authorities import CallerCAs, FrontProxySettings, MaterialSettings
from adapter.metrics.identity.callers import (
    AccessForbiddenError,
    Caller,
    IdentityError,
    IdentitySettingsError,
    Peer,
    UnauthenticatedError,
    Via,
)
from adapter.metrics.identity.chains import MOST_CHAINS, utc_now
from adapter.metrics.identity.front_proxy import MOST_CALLERS, MOST_HEADER_NAMES, CallerReader
from adapter.metrics.identity.headers import HeaderNames
from demo.machine.certificates import Authority, Validity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "front-proxy-client"
ALICE = (("X-Remote-User", "alice"),)


class Time:
    """A wall clock and a monotonic clock, both moved by hand."""

    def __init__(self) -> None:
        self.now = datetime.now(tz=UTC)
        self.seconds = 0.0

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds


@pytest.fixture(name="time")
def _time() -> Time:
    return Time()


@pytest.fixture(name="authority", scope="module")
def _authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("front-proxy-ca"), "front-proxy-ca")


@pytest.fixture(name="other", scope="module")
def _other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("cluster-ca"), "cluster-ca")


class FrontProxy(AccessControl):
    """Access control that trusts only a front proxy."""

    def __init__(
        self,
        settings: FrontProxySettings,
        *,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.materials = CallerCAs(MaterialSettings(settings), clock)
        super().__init__(self.materials, now=now)


def front_proxy(authority: Authority, time: Time, *names: str) -> FrontProxy:
    settings = FrontProxySettings(authority.ca_file, names)
    return FrontProxy(settings, now=lambda: time.now, clock=lambda: time.seconds)


def test_a_verified_front_proxy_identifies_a_user(authority: Authority, time: Time) -> None:
    headers = (
        *ALICE,
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "b"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Extra-Scopes", "read"),
    )
    caller = front_proxy(authority, time, NAME).identify(Peer(authority.client(NAME).chain), headers)
    assert caller == Caller(
        "alice", ("a", "b", "system:authenticated"), Via.FRONT_PROXY, uid="7", extra={"scopes": ("read",)}
    )


@pytest.mark.parametrize(
    ("user", "groups", "expected"),
    [
        ("system:kube-aggregator", (), ("system:authenticated",)),
        ("system:anonymous", ("system:unauthenticated",), ("system:unauthenticated",)),
        ("system:anonymous", (), ()),
        ("alice", ("system:authenticated", "a"), ("system:authenticated", "a")),
        ("alice", ("system:unauthenticated",), ("system:unauthenticated",)),
    ],
)
def test_system_authenticated_is_added_once_and_never_to_anonymous(
    authority: Authority, time: Time, user: str, groups: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    headers = (("X-Remote-User", user), *(("X-Remote-Group", group) for group in groups))
    caller = front_proxy(authority, time, NAME).identify(Peer(authority.client(NAME).chain), headers)
    assert caller.groups == expected


def test_headers_without_a_certificate_are_not_an_identity(authority: Authority, time: Time) -> None:
    forged = (*ALICE, ("X-Remote-Group", "system:masters"))
    with pytest.raises(UnauthenticatedError, match="no verified client certificate") as refused:
        front_proxy(authority, time, NAME).identify(Peer(), forged)
    assert "alice" not in refused.value.message


def test_a_front_proxy_that_names_no_user_is_unauthenticated(authority: Authority, time: Time) -> None:
    with pytest.raises(UnauthenticatedError, match="named no user"):
        front_proxy(authority, time, NAME).identify(Peer(authority.client(NAME).chain), (("X-Remote-Group", "a"),))


def test_the_same_name_from_another_ca_is_refused(authority: Authority, other: Authority, time: Time) -> None:
    with pytest.raises(AccessForbiddenError, match="not issued by the request-header CA"):
        front_proxy(authority, time, NAME).identify(Peer(other.client(NAME).chain), ALICE)


def test_a_root_that_merely_has_the_name_of_the_ca_is_refused(authority: Authority, time: Time, tmp_path: Path) -> None:
    impostor = Authority(tmp_path / "impostor", "front-proxy-ca")
    with pytest.raises(AccessForbiddenError, match="not issued by the request-header CA"):
        front_proxy(authority, time, NAME).identify(Peer(impostor.client(NAME).chain), ALICE)


def test_a_name_that_is_not_allowed_is_refused(authority: Authority, time: Time) -> None:
    with pytest.raises(AccessForbiddenError, match="'kubelet' is not among --requestheader-allowed-names"):
        front_proxy(authority, time, NAME).identify(Peer(authority.client("kubelet").chain), ALICE)


def _signed(signer: ec.EllipticCurvePrivateKey, now: datetime, *names: str) -> x509.Certificate:
    """Return a certificate for the signer's own key, which is not a CA; subject and issuer have these common names."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    builder = x509.CertificateBuilder(subject, subject, signer.public_key(), x509.random_serial_number())
    lasting = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    return lasting.sign(signer, SHA256())


@pytest.mark.parametrize("names", [(), (NAME, "kubelet"), ("kubelet", NAME), (NAME, NAME)])
def test_a_certificate_of_no_or_several_common_names_identifies_nobody(
    tmp_path: Path, time: Time, names: tuple[str, ...]
) -> None:
    certificate = _signed(ec.generate_private_key(ec.SECP256R1()), time.now, *names)
    file, peer = tmp_path / "bundle.crt", Peer((certificate.public_bytes(Encoding.DER),))
    file.write_bytes(certificate.public_bytes(Encoding.PEM))
    proxy = FrontProxy(FrontProxySettings(file, (NAME,)), now=lambda: time.now)
    with pytest.raises(AccessForbiddenError, match=f"has {len(names)} common names"):
        proxy.identify(peer, ALICE)
    callers = AccessControl(CallerCAs(MaterialSettings(client_ca_file=file)), now=lambda: time.now)
    with pytest.raises(UnauthenticatedError, match=f"has {len(names)} common names"):
        callers.identify(peer, ALICE)


def test_a_client_certificate_in_the_bundle_vouches_for_no_other(tmp_path: Path, time: Time) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    own, signed = (_signed(key, time.now, NAME) for _ in range(2))
    file = tmp_path / "bundle.crt"
    file.write_bytes(own.public_bytes(Encoding.PEM))
    proxy = FrontProxy(FrontProxySettings(file, (NAME,)), now=lambda: time.now)
    assert proxy.identify(Peer((own.public_bytes(Encoding.DER),)), ALICE).name == "alice"
    with pytest.raises(AccessForbiddenError, match="not issued by the request-header CA"):
        proxy.identify(Peer((signed.public_bytes(Encoding.DER),)), ALICE)


def test_without_allowed_names_every_name_of_the_ca_is_accepted_with_a_warning(
    authority: Authority, time: Time
) -> None:
    proxy = front_proxy(authority, time)
    assert proxy.identify(Peer(authority.client("anything").chain), ALICE).name == "alice"
    assert "--requestheader-allowed-names" in proxy.materials.warnings()[0]
    assert front_proxy(authority, time, NAME).materials.warnings() == ()


@pytest.mark.parametrize(
    ("usages", "allowed"),
    [
        ((ExtendedKeyUsageOID.CLIENT_AUTH,), True),
        ((ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH), True),
        ((ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,), True),
        ((), True),
        ((ExtendedKeyUsageOID.SERVER_AUTH,), False),
    ],
)
def test_the_certificate_must_allow_client_authentication(
    authority: Authority, time: Time, usages: tuple[ObjectIdentifier, ...], *, allowed: bool
) -> None:
    chain = authority.client(NAME, usages=usages).chain
    proxy = front_proxy(authority, time, NAME)
    if allowed:
        assert proxy.identify(Peer(chain), ALICE).name == "alice"
    else:
        with pytest.raises(AccessForbiddenError, match="does not allow client authentication"):
            proxy.identify(Peer(chain), ALICE)


def test_a_certificate_that_expires_on_an_open_connection_is_refused(authority: Authority, time: Time) -> None:
    short = Validity(time.now - timedelta(minutes=1), time.now + timedelta(minutes=1))
    peer = Peer(authority.client(NAME, validity=short).chain)
    proxy = front_proxy(authority, time, NAME)
    assert proxy.identify(peer, ALICE).name == "alice"
    time.pass_(61)
    with pytest.raises(UnauthenticatedError, match="expired"):
        proxy.identify(peer, ALICE)


def test_a_certificate_of_the_future_is_not_valid_yet(authority: Authority, time: Time) -> None:
    later = Validity(time.now + timedelta(minutes=1), time.now + timedelta(hours=1))
    peer = Peer(authority.client(NAME, validity=later).chain)
    proxy = front_proxy(authority, time, NAME)
    with pytest.raises(UnauthenticatedError, match="not valid yet"):
        proxy.identify(peer, ALICE)
    time.pass_(61)
    assert proxy.identify(peer, ALICE).name == "alice"


@pytest.mark.parametrize("bundle", ["root", "intermediate", "both"])
def test_the_bundle_may_hold_root_intermediate_or_both(tmp_path: Path, time: Time, bundle: str) -> None:
    authority = Authority(tmp_path / "ca", intermediate=True)
    assert authority.intermediate is not None
    root, middle = (c.public_bytes(Encoding.PEM) for c in (authority.root, authority.intermediate))
    file = tmp_path / "bundle.crt"
    file.write_bytes({"root": root, "intermediate": middle, "both": middle + root}[bundle])
    proxy = FrontProxy(FrontProxySettings(file, (NAME,)), now=lambda: time.now)
    leaf, issuer, anchor = authority.client(NAME).chain
    assert proxy.identify(Peer((leaf, issuer, anchor)), ALICE).name == "alice"


def test_an_intermediate_in_the_bundle_does_not_make_its_siblings_front_proxies(tmp_path: Path, time: Time) -> None:
    authority = Authority(tmp_path / "ca", intermediate=True)
    sibling = Authority(tmp_path / "sibling", intermediate=True)
    assert authority.intermediate is not None
    file = tmp_path / "bundle.crt"
    file.write_bytes(authority.intermediate.public_bytes(Encoding.PEM))
    proxy = FrontProxy(FrontProxySettings(file, (NAME,)), now=lambda: time.now)
    with pytest.raises(AccessForbiddenError):
        proxy.identify(Peer(sibling.client(NAME).chain), ALICE)


def test_bytes_that_are_not_a_certificate_are_refused(authority: Authority, time: Time) -> None:
    root = authority.client(NAME).chain[-1]
    with pytest.raises(AccessForbiddenError, match="cannot be read"):
        front_proxy(authority, time, NAME).identify(Peer((b"not a certificate", root)), ALICE)


class TestRotation:
    @pytest.fixture(name="bundle")
    def _bundle(self, authority: Authority, tmp_path: Path) -> Path:
        bundle = tmp_path / "bundle.crt"
        bundle.write_bytes(authority.ca_file.read_bytes())
        return bundle

    @pytest.fixture(name="proxy")
    def _proxy(self, bundle: Path, time: Time) -> FrontProxy:
        settings = FrontProxySettings(bundle, (NAME,))
        return FrontProxy(settings, now=lambda: time.now, clock=lambda: time.seconds)

    def test_a_replaced_bundle_accepts_the_new_ca_and_refuses_the_old_one(
        self, authority: Authority, other: Authority, bundle: Path, proxy: FrontProxy, time: Time
    ) -> None:
        old, new = Peer(authority.client(NAME).chain), Peer(other.client(NAME).chain)
        assert proxy.identify(old, ALICE).name == "alice"
        replace_file(bundle, other.ca_file.read_bytes())
        time.pass_(LOOK_SECONDS)
        assert proxy.identify(new, ALICE).name == "alice"
        with pytest.raises(AccessForbiddenError):
            proxy.identify(old, ALICE)

    @pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    def test_a_broken_bundle_leaves_the_last_good_one_and_is_reported_once(
        self,
        authority: Authority,
        bundle: Path,
        proxy: FrontProxy,
        time: Time,
        caplog: pytest.LogCaptureFixture,
        content: bytes,
    ) -> None:
        replace_file(bundle, content)
        for _ in range(3):
            time.pass_(LOOK_SECONDS)
            assert proxy.identify(Peer(authority.client(NAME).chain), ALICE).name == "alice"
        (message,) = caplog.messages
        assert message.startswith("CA bundle (")
        assert "cannot be used; the last good version stays in use" in message

    def test_a_bundle_that_vanishes_and_comes_back_takes_effect(
        self, other: Authority, bundle: Path, proxy: FrontProxy, time: Time
    ) -> None:
        bundle.unlink()
        time.pass_(LOOK_SECONDS)
        with pytest.raises(AccessForbiddenError):
            proxy.identify(Peer(other.client(NAME).chain), ALICE)
        bundle.write_bytes(other.ca_file.read_bytes())
        time.pass_(LOOK_SECONDS)
        assert proxy.identify(Peer(other.client(NAME).chain), ALICE).name == "alice"


def test_users_who_make_up_names_and_headers_are_all_identified_in_bounded_memory() -> None:
    reader = CallerReader(HeaderNames())
    for name in [*(f"user-{number}" for number in range(MOST_CALLERS + 1)), "user-0", f"user-{MOST_CALLERS}"]:
        assert reader.read([(f"X-Of-{name}", ""), ("X-Remote-User", name)]).name == name
    assert (len(reader._known), len(reader._foreign)) == (MOST_CALLERS, MOST_HEADER_NAMES)


def test_the_number_of_remembered_verdicts_is_bounded(authority: Authority, time: Time) -> None:
    proxy = front_proxy(authority, time, NAME)
    chain = authority.client(NAME).chain
    for number in range(MOST_CHAINS + 10):
        with pytest.raises(AccessForbiddenError):
            proxy.identify(Peer((b"%d" % number, chain[-1])), ALICE)
    assert len(proxy._front_proxies._verdicts) == MOST_CHAINS
    assert proxy.identify(Peer(chain), ALICE).name == "alice"


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_an_unusable_bundle_at_the_start_is_an_error_that_names_the_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(IdentitySettingsError, match=r"ca\.crt"):
        FrontProxy(FrontProxySettings(file))


@pytest.mark.parametrize(
    "names", [{"users": ("X-Remote-User", " ")}, {"groups": ("",)}, {"extra_prefixes": ("",)}, {"uids": ("",)}]
)
def test_an_empty_header_name_is_an_error(names: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(IdentitySettingsError, match="empty header name"):
        HeaderNames(**names)


def test_a_missing_username_header_is_an_error() -> None:
    with pytest.raises(IdentitySettingsError, match="requestheader-username-headers"):
        HeaderNames(users=())


class TestAccessControl:
    def test_without_a_front_proxy_no_request_is_accepted(self, authority: Authority) -> None:
        access_control = AccessControl(CallerCAs(MaterialSettings()))
        with pytest.raises(IdentityError):
            access_control.identify(Peer(authority.client(NAME).chain), ALICE)
        with pytest.raises(UnauthenticatedError):
            access_control.identify(Peer(), ALICE)
        assert access_control.notes() == (NO_FRONT_PROXY,)

    def test_permissive_settings_are_noted(self, authority: Authority, time: Time) -> None:
        assert front_proxy(authority, time, NAME).notes() == (ONLY_THE_FRONT_PROXY,)
        assert len(front_proxy(authority, time).notes()) == 2


def test_refusals_have_http_status_codes() -> None:
    assert (UnauthenticatedError.code, AccessForbiddenError.code) == (401, 403)
    assert issubclass(UnauthenticatedError, IdentityError)


_serial = itertools.count(1)


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file by renaming, as Kubernetes does, so that its inode changes."""
    new = file.with_suffix(f".new-{next(_serial)}")
    new.write_bytes(content)
    new.replace(file)
