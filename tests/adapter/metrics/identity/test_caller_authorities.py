"""The CAs and names of authentication: what flags and the ConfigMap say, and that the last good ones stay in force."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from adapter.foundation.files.credential_files import LOOK_SECONDS
from adapter.foundation.sources.kubernetes.errors import error_of_answer
from adapter.metrics.identity import authentication_config_map
from adapter.metrics.identity.authentication import AccessControl
from adapter.metrics.identity.authentication_config_map import ConfigMap, ConfigMapMetadata, Lookup
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
from demo.machine.certificates import SERVER, Authority
from demo.machine.files import replace_file
from tests.support.validity import of_yesterday

if TYPE_CHECKING:
    from pathlib import Path

NAME = "front-proxy-client"
ALICE = (("X-Remote-User", "alice"),)
LOOKED_UP = MaterialSettings(looked_up=True)


@dataclass(frozen=True)
class Cas:
    front: Authority
    clients: Authority
    other: Authority


@pytest.fixture(name="cas", scope="module")
def _cas(tmp_path_factory: pytest.TempPathFactory) -> Cas:
    folder = tmp_path_factory.mktemp("cas")
    return Cas(*(Authority(folder / name, name) for name in ("front-proxy", "clients", "other")))


def config_map_with(data: bytes) -> ConfigMap:
    return ConfigMap(ConfigMapMetadata("extension-apiserver-authentication"), msgspec.Raw(data))


class Harness:
    """Access control whose CAs are looked up, and the ConfigMap as it is reported."""

    def __init__(self, settings: MaterialSettings = LOOKED_UP) -> None:
        self.materials = CallerCAs(settings)
        self.lookup = Lookup(self.materials)
        self.access_control = AccessControl(self.materials)

    def publish(self, **data: str) -> None:
        self.lookup.take(
            config_map_with(json.dumps({key.replace("_", "-"): value for key, value in data.items()}).encode())
        )

    def trouble(self) -> str:
        return self.lookup.trouble or ""

    def identify(self, peer: Peer, *headers: tuple[str, str]) -> Caller:
        return self.access_control.identify(peer, headers)

    def name(self, peer: Peer) -> str | int:
        """Return the caller of a request that the front proxy sends for alice, or the code of the refusal."""
        try:
            return self.identify(peer, *ALICE).name
        except IdentityError as error:
            return error.code


def pem(*authorities: Authority) -> str:
    return "".join(authority.ca_file.read_text() for authority in authorities)


def good(cas: Cas) -> dict[str, str]:
    return {
        "requestheader_client_ca_file": pem(cas.front),
        "requestheader_allowed_names": f'["{NAME}"]',
        "requestheader_username_headers": '["X-Remote-User"]',
        "requestheader_group_headers": '["X-Remote-Group"]',
        "requestheader_extra_headers_prefix": '["X-Remote-Extra-"]',
        "client_ca_file": pem(cas.clients),
    }


def proxy(authority: Authority, name: str = NAME) -> Peer:
    return Peer(authority.client(name).chain)


OLD_CURVE = """\
-----BEGIN CERTIFICATE-----
MIIBSjCCAQigAwIBAgIUBx5kZ5aWg2vG3+3QYn2RaRw0cZEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJb2xkLWN1cnZlMB4XDTI2MTEyODAwMzUxOFoXDTM2MTEyNTAw
MzUxOFowFDESMBAGA1UEAwwJb2xkLWN1cnZlMD4wEAYHKoZIzj0CAQYFK4EEAAgD
KgAEErF7j7cIfpgnqptZrf+WuQ9ylLRU5wn2YeDtj+WFhhYX3rvmDGFmGKNTMFEw
HQYDVR0OBBYEFMI8i74B5SxJv2ymFHhjneF/oJknMB8GA1UdIwQYMBaAFMI8i74B
5SxJv2ymFHhjneF/oJknMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDMAAw
LQIVALLTzvEK58LJ1W3ZpUYAM2d8v8rbAhRunpmdU/U2iHhUZgR3xD3p7cho2Q==
-----END CERTIFICATE-----
"""
"""A CA with a key on the curve secp160r1, which OpenSSL loads but the library for certificates does not know."""


class TestConfigMap:
    def test_the_cas_and_names_of_the_config_map_take_effect(self, cas: Cas) -> None:
        harness = Harness()
        assert harness.trouble() == "ConfigMap kube-system/extension-apiserver-authentication has not been read yet"
        assert harness.materials.trusted_cas() == frozenset()
        harness.publish(**good(cas))
        assert harness.trouble() == ""
        assert harness.name(proxy(cas.front)) == "alice"
        assert harness.name(proxy(cas.front, "somebody")) == 403
        assert harness.name(proxy(cas.clients, "bob")) == "bob"
        both = {authority.root.public_bytes(Encoding.DER) for authority in (cas.front, cas.clients)}
        assert harness.materials.trusted_cas() == both

    def test_the_config_map_names_the_headers(self, cas: Cas) -> None:
        harness = Harness()
        harness.publish(**good(cas) | {"requestheader_username_headers": '["X-User", "X-Remote-User"]'})
        peer = proxy(cas.front)
        assert harness.identify(peer, ("X-Remote-User", "alice"), ("X-User", "bob")).name == "bob"
        harness.publish(
            **good(cas) | {"requestheader_group_headers": '["X-Group"]', "requestheader_uid_headers": '["X-Uid"]'}
        )
        caller = harness.identify(
            peer, *ALICE, ("X-Group", "a"), ("X-Remote-Group", "b"), ("X-Uid", "7"), ("X-Remote-Uid", "8")
        )
        assert (caller.groups, caller.uid) == (("a", "system:authenticated"), "7")

    def test_the_uid_header_is_ignored_if_the_config_map_does_not_name_it(self, cas: Cas) -> None:
        harness = Harness()
        harness.publish(**good(cas))
        assert harness.identify(proxy(cas.front), *ALICE, ("X-Remote-Uid", "7")).uid == ""

    def test_without_allowed_names_every_name_is_accepted_with_a_warning(
        self, cas: Cas, caplog: pytest.LogCaptureFixture
    ) -> None:
        harness = Harness()
        harness.publish(**good(cas) | {"requestheader_allowed_names": "[]"})
        assert harness.name(proxy(cas.front, "anything")) == "alice"
        assert any("may act for any user" in record.message for record in caplog.records)

    def test_both_cas_rotate_through_bundles_of_old_and_new(self, cas: Cas) -> None:
        harness = Harness()
        harness.publish(**good(cas))
        old, new = proxy(cas.front), proxy(cas.other)
        harness.publish(**good(cas) | {"requestheader_client_ca_file": pem(cas.front, cas.other)})
        assert (harness.name(old), harness.name(new)) == ("alice", "alice")
        harness.publish(**good(cas) | {"requestheader_client_ca_file": pem(cas.other)})
        assert (harness.name(old), harness.name(new)) == (403, "alice")
        harness.publish(**good(cas) | {"client_ca_file": pem(cas.other)})
        assert (harness.name(proxy(cas.clients)), harness.name(proxy(cas.other, "carol"))) == (403, "carol")

    @pytest.mark.parametrize(
        ("broken", "cause"),
        [
            ({"requestheader_client_ca_file": ""}, "the key requestheader-client-ca-file is missing"),
            ({"requestheader_client_ca_file": "no PEM"}, "no PEM certificate could be read"),
            (
                {"requestheader_client_ca_file": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
                "no PEM certificate could be read",
            ),
            ({"requestheader_client_ca_file": OLD_CURVE}, "the key of a certificate in it cannot be used"),
            ({"requestheader_allowed_names": "front-proxy-client"}, "requestheader-allowed-names is not a JSON list"),
            ({"requestheader_allowed_names": "null"}, "requestheader-allowed-names is not a JSON list"),
            ({"requestheader_allowed_names": "[1]"}, "requestheader-allowed-names is not a JSON list"),
            ({"requestheader_group_headers": '[""]'}, "empty header name"),
        ],
    )
    def test_a_broken_part_is_refused_as_a_whole_and_the_last_good_one_stays(
        self, cas: Cas, caplog: pytest.LogCaptureFixture, broken: dict[str, str], cause: str
    ) -> None:
        fresh, running = Harness(), Harness()
        running.publish(**good(cas))
        new = good(cas) | {"requestheader_client_ca_file": pem(cas.other)} | broken
        for harness in (fresh, running):
            harness.publish(**new)
            harness.publish(**new)
            assert cause in harness.trouble()
            assert harness.name(proxy(cas.clients, "bob")) == "bob", "the other part is unaffected"
        assert fresh.name(proxy(cas.front)) == 403
        assert running.name(proxy(cas.front)) == "alice"
        assert running.name(proxy(cas.other)) == 403
        assert [record.message for record in caplog.records if "refused" in record.message] == [
            "request-header CA is refused; there is none",
            "request-header CA is refused; the last good one stays in use",
        ]
        running.publish(**good(cas))
        assert running.trouble() == ""

    def test_a_broken_client_ca_leaves_the_last_good_one_and_the_front_proxy_in_force(self, cas: Cas) -> None:
        harness = Harness()
        harness.publish(**good(cas))
        for broken in (
            "",
            "no PEM",
            pem(cas.clients) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ):
            harness.publish(**good(cas) | {"client_ca_file": broken})
            assert (harness.name(proxy(cas.clients, "bob")), harness.name(proxy(cas.front))) == ("bob", "alice")

    @pytest.mark.parametrize(
        "found",
        [
            None,
            *map(
                config_map_with, (b"null", b"{}", b"[]", b'{"client-ca-file": "\xff"}', b'{"client-ca-file": 1}', b"1")
            ),
        ],
    )
    def test_a_deleted_empty_or_invalid_config_map_leaves_the_last_good_cas(
        self, cas: Cas, found: ConfigMap | None
    ) -> None:
        harness = Harness()
        harness.publish(**good(cas))
        harness.lookup.take(found)
        assert harness.trouble()
        assert (harness.name(proxy(cas.clients, "bob")), harness.name(proxy(cas.front))) == ("bob", "alice")

    def test_failing_watches_between_good_lists_are_logged_once_until_they_end(
        self, cas: Cas, caplog: pytest.LogCaptureFixture
    ) -> None:
        harness, watch = Harness(), error_of_answer("GET /api/v1/…", 403, b'{"message": "cannot watch"}')

        def warnings() -> int:
            return sum("cannot be looked up" in record.message for record in caplog.records)

        for _ in range(3):
            harness.publish(**good(cas))
            harness.lookup.note_failure(watch)
        assert warnings() == 1
        harness.lookup.note_failure(error_of_answer("GET /api/v1/…", 403, b'{"message": "cannot list"}'))
        assert warnings() == 2
        harness.publish(**good(cas))
        harness.publish(**good(cas))
        harness.lookup.note_failure(watch)
        assert warnings() == 3

    def test_a_forbidden_config_map_is_reported_with_the_missing_role(self) -> None:
        harness = Harness()
        harness.lookup.note_failure(error_of_answer("GET /api/v1/…", 403, b'{"message": "forbidden"}'))
        assert "extension-apiserver-authentication-reader" in harness.trouble()

    def test_the_same_ca_for_both_needs_allowed_names(self, cas: Cas, caplog: pytest.LogCaptureFixture) -> None:
        harness = Harness()
        open_to_all = good(cas) | {"client_ca_file": pem(cas.front), "requestheader_allowed_names": "[]"}
        harness.publish(**open_to_all)
        harness.publish(**open_to_all)
        assert harness.name(proxy(cas.front)) == 403
        assert "an authority in common" in harness.trouble()
        assert len([record for record in caplog.records if "refused" in record.message]) == 1
        harness.publish(**open_to_all | {"requestheader_allowed_names": f'["{NAME}"]'})
        assert harness.trouble() == ""
        assert harness.name(proxy(cas.front)) == "alice"
        assert harness.name(proxy(cas.front, "bob")) == "bob", "a client's own certificate"

    def test_a_client_ca_that_comes_to_overlap_is_refused_and_the_last_good_one_stays(self, cas: Cas) -> None:
        harness = Harness()
        harness.publish(**good(cas) | {"requestheader_allowed_names": "[]"})
        harness.publish(
            **good(cas) | {"requestheader_allowed_names": "[]", "client_ca_file": pem(cas.clients, cas.front)}
        )
        assert (harness.name(proxy(cas.clients, "bob")), harness.name(proxy(cas.front))) == ("bob", "alice")
        assert harness.trouble()


class TestFlags:
    def test_flags_take_precedence_over_the_config_map(self, cas: Cas) -> None:
        flags = FrontProxySettings(cas.other.ca_file, (NAME,))
        harness = Harness(MaterialSettings(flags, looked_up=True))
        assert harness.name(proxy(cas.other)) == "alice"
        harness.publish(**good(cas))
        assert (harness.name(proxy(cas.other)), harness.name(proxy(cas.front))) == ("alice", 403)
        assert harness.name(proxy(cas.clients, "bob")) == "bob", "what no flag sets is looked up"

    def test_a_client_ca_by_flag_takes_precedence_too(self, cas: Cas) -> None:
        harness = Harness(MaterialSettings(None, cas.other.ca_file, looked_up=True))
        harness.publish(**good(cas))
        assert harness.name(proxy(cas.other, "bob")) == "bob"
        assert harness.name(proxy(cas.clients)) == 403
        assert harness.name(proxy(cas.front)) == "alice"

    def test_the_same_ca_in_both_files_is_an_error_at_the_start(self, cas: Cas) -> None:
        with pytest.raises(IdentitySettingsError, match="an authority in common"):
            CallerCAs(MaterialSettings(FrontProxySettings(cas.front.ca_file), cas.front.ca_file))
        CallerCAs(MaterialSettings(FrontProxySettings(cas.front.ca_file, (NAME,)), cas.front.ca_file))

    def test_a_replaced_client_ca_file_takes_effect_within_a_second(self, cas: Cas, tmp_path: Path) -> None:
        file = tmp_path / "clients.crt"
        file.write_text(pem(cas.clients))
        now = [0.0]
        materials = CallerCAs(MaterialSettings(client_ca_file=file), clock=lambda: now[0])
        access_control = AccessControl(materials)
        replace_file(file, pem(cas.other))
        assert access_control.identify(proxy(cas.clients, "bob"), ()).name == "bob"
        now[0] += LOOK_SECONDS
        assert access_control.identify(proxy(cas.other, "carol"), ()).name == "carol"
        with pytest.raises(AccessForbiddenError):
            access_control.identify(proxy(cas.clients, "bob"), ())
        replace_file(file, "broken")
        now[0] += LOOK_SECONDS
        assert access_control.identify(proxy(cas.other, "carol"), ()).name == "carol"

    def test_a_config_map_refused_because_of_a_file_takes_effect_once_the_file_changes(
        self, cas: Cas, tmp_path: Path
    ) -> None:
        file = tmp_path / "clients.crt"
        file.write_text(pem(cas.other))
        now = [0.0]
        materials = CallerCAs(MaterialSettings(client_ca_file=file, looked_up=True), clock=lambda: now[0])
        lookup, access_control = Lookup(materials), AccessControl(materials)
        data = {"requestheader-client-ca-file": pem(cas.other), "requestheader-allowed-names": "[]"}
        for _ in range(2):
            lookup.take(config_map_with(msgspec.json.encode(data)))
            assert "an authority in common" in (lookup.trouble or "")
        replace_file(file, pem(cas.clients))
        now[0] += LOOK_SECONDS
        assert access_control.identify(proxy(cas.other), ALICE).name == "alice"
        assert lookup.trouble is None


class TestClientCertificates:
    @pytest.fixture(name="harness")
    def _harness(self, cas: Cas) -> Harness:
        harness = Harness()
        harness.publish(**good(cas))
        return harness

    def test_the_common_name_is_the_user_and_organizations_are_the_groups(self, harness: Harness, cas: Cas) -> None:
        caller = harness.identify(Peer(cas.clients.client("bob", ["team-a", "team-b"]).chain))
        assert caller == Caller("bob", ("team-a", "team-b", "system:authenticated"), Via.CLIENT_CERTIFICATE)

    def test_headers_are_ignored_with_a_client_certificate(self, harness: Harness, cas: Cas) -> None:
        caller = harness.identify(proxy(cas.clients, NAME), *ALICE, ("X-Remote-Group", "system:masters"))
        assert (caller.name, caller.groups) == (NAME, ("system:authenticated",))

    def test_a_certificate_of_the_request_header_ca_does_not_identify_a_user(self, harness: Harness, cas: Cas) -> None:
        masters = Peer(cas.front.client("somebody", ["system:masters"]).chain)
        assert harness.name(masters) == 403
        with pytest.raises(UnauthenticatedError, match="named no user"):
            harness.identify(Peer(cas.front.client(NAME, ["system:masters"]).chain))

    @pytest.mark.parametrize("common_name", ["system:anonymous", "bob"])
    def test_an_anonymous_name_is_not_authenticated(self, harness: Harness, cas: Cas, common_name: str) -> None:
        groups = harness.identify(proxy(cas.clients, common_name)).groups
        assert ("system:authenticated" in groups) == (common_name == "bob")

    def test_a_server_certificate_is_not_accepted_from_a_client(self, harness: Harness, cas: Cas) -> None:
        with pytest.raises(UnauthenticatedError, match="extended key usage"):
            harness.identify(Peer(cas.clients.client("bob", usages=SERVER).chain))

    def test_an_expired_certificate_is_not_accepted(self, harness: Harness, cas: Cas) -> None:
        with pytest.raises(UnauthenticatedError, match="expired"):
            harness.identify(Peer(cas.clients.client("bob", validity=of_yesterday()).chain))

    def test_another_ca_of_the_same_name_is_not_trusted(self, harness: Harness, tmp_path: Path) -> None:
        impostor = Authority(tmp_path / "impostor", "clients")
        assert harness.name(proxy(impostor, "bob")) == 403

    def test_a_client_certificate_in_the_bundle_does_not_trust_its_siblings(self, cas: Cas) -> None:
        pinned = cas.other.client("pinned")
        harness = Harness()
        harness.publish(**good(cas) | {"client_ca_file": pinned.certificate_file.read_text()})
        assert harness.name(Peer(pinned.chain)) == "pinned"
        assert harness.name(proxy(cas.other, "bob")) == 403


def test_the_bundle_may_hold_a_root_above_the_end_of_the_tls_chain(tmp_path: Path) -> None:
    """TLS ends a chain where it first finds trust: here at the intermediate, which another bundle holds."""
    authority = Authority(tmp_path / "ca", intermediate=True)
    leaf, middle, _root = authority.client("bob").chain
    access_control = AccessControl(CallerCAs(MaterialSettings(client_ca_file=authority.ca_file)))
    assert access_control.identify(Peer((leaf, middle)), ()).name == "bob"
    assert access_control.identify(Peer((leaf, middle, b"another CA's copy of the root")), ()).name == "bob"


def test_the_config_map_has_the_name_and_namespace_of_kubernetes() -> None:
    assert authentication_config_map.NAMESPACE == "kube-system"
    assert authentication_config_map.NAME == "extension-apiserver-authentication"
