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
from adapter.metrics.identity.gate import Gate
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


class Place:
    """A gate whose CAs are looked up, and the ConfigMap as it is reported."""

    def __init__(self, settings: MaterialSettings = LOOKED_UP) -> None:
        self.materials = CallerCAs(settings)
        self.lookup = Lookup(self.materials)
        self.gate = Gate(self.materials)

    def tell(self, **data: str) -> None:
        self.lookup.take(
            config_map_with(json.dumps({key.replace("_", "-"): value for key, value in data.items()}).encode())
        )

    def trouble(self) -> str:
        return self.lookup.trouble or ""

    def who(self, peer: Peer, *headers: tuple[str, str]) -> Caller:
        return self.gate.identify(peer, headers)

    def name(self, peer: Peer) -> str | int:
        """Return who asks through the front proxy as alice, or the code of the refusal."""
        try:
            return self.who(peer, *ALICE).name
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
    def test_what_it_says_is_taken_in(self, cas: Cas) -> None:
        place = Place()
        assert place.trouble() == "ConfigMap kube-system/extension-apiserver-authentication has not been read yet"
        assert place.materials.trusted() == frozenset()
        place.tell(**good(cas))
        assert place.trouble() == ""
        assert place.name(proxy(cas.front)) == "alice"
        assert place.name(proxy(cas.front, "somebody")) == 403
        assert place.name(proxy(cas.clients, "bob")) == "bob"
        both = {authority.root.public_bytes(Encoding.DER) for authority in (cas.front, cas.clients)}
        assert place.materials.trusted() == both

    def test_headers_are_those_that_it_names(self, cas: Cas) -> None:
        place = Place()
        place.tell(**good(cas) | {"requestheader_username_headers": '["X-User", "X-Remote-User"]'})
        peer = proxy(cas.front)
        assert place.who(peer, ("X-Remote-User", "alice"), ("X-User", "bob")).name == "bob"
        place.tell(
            **good(cas) | {"requestheader_group_headers": '["X-Group"]', "requestheader_uid_headers": '["X-Uid"]'}
        )
        caller = place.who(
            peer, *ALICE, ("X-Group", "a"), ("X-Remote-Group", "b"), ("X-Uid", "7"), ("X-Remote-Uid", "8")
        )
        assert (caller.groups, caller.uid) == (("a", "system:authenticated"), "7")

    def test_an_older_kubernetes_names_no_uid_headers(self, cas: Cas) -> None:
        place = Place()
        place.tell(**good(cas))
        assert place.who(proxy(cas.front), *ALICE, ("X-Remote-Uid", "7")).uid == ""

    def test_without_allowed_names_every_name_speaks_and_that_is_said(
        self, cas: Cas, caplog: pytest.LogCaptureFixture
    ) -> None:
        place = Place()
        place.tell(**good(cas) | {"requestheader_allowed_names": "[]"})
        assert place.name(proxy(cas.front, "anything")) == "alice"
        assert any("may act for any user" in record.message for record in caplog.records)

    def test_both_cas_rotate_by_way_of_bundles_that_hold_both(self, cas: Cas) -> None:
        place = Place()
        place.tell(**good(cas))
        old, new = proxy(cas.front), proxy(cas.other)
        place.tell(**good(cas) | {"requestheader_client_ca_file": pem(cas.front, cas.other)})
        assert (place.name(old), place.name(new)) == ("alice", "alice")
        place.tell(**good(cas) | {"requestheader_client_ca_file": pem(cas.other)})
        assert (place.name(old), place.name(new)) == (403, "alice")
        place.tell(**good(cas) | {"client_ca_file": pem(cas.other)})
        assert (place.name(proxy(cas.clients)), place.name(proxy(cas.other, "carol"))) == (403, "carol")

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
    def test_a_broken_part_is_refused_whole_with_its_reason_and_the_last_good_stays(
        self, cas: Cas, caplog: pytest.LogCaptureFixture, broken: dict[str, str], cause: str
    ) -> None:
        fresh, running = Place(), Place()
        running.tell(**good(cas))
        new = good(cas) | {"requestheader_client_ca_file": pem(cas.other)} | broken
        for place in (fresh, running):
            place.tell(**new)
            place.tell(**new)
            assert cause in place.trouble()
            assert place.name(proxy(cas.clients, "bob")) == "bob", "the other part is unaffected"
        assert fresh.name(proxy(cas.front)) == 403
        assert running.name(proxy(cas.front)) == "alice"
        assert running.name(proxy(cas.other)) == 403
        assert [record.message for record in caplog.records if "refused" in record.message] == [
            "request-header CA is refused; there is none",
            "request-header CA is refused; the last good one stays in use",
        ]
        running.tell(**good(cas))
        assert running.trouble() == ""

    def test_a_client_ca_that_is_broken_leaves_the_last_good_and_the_front_proxy_alone(self, cas: Cas) -> None:
        place = Place()
        place.tell(**good(cas))
        for broken in (
            "",
            "no PEM",
            pem(cas.clients) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ):
            place.tell(**good(cas) | {"client_ca_file": broken})
            assert (place.name(proxy(cas.clients, "bob")), place.name(proxy(cas.front))) == ("bob", "alice")

    @pytest.mark.parametrize(
        "found",
        [
            None,
            *map(
                config_map_with, (b"null", b"{}", b"[]", b'{"client-ca-file": "\xff"}', b'{"client-ca-file": 1}', b"1")
            ),
        ],
    )
    def test_deleted_empty_and_garbage_leave_the_last_good(self, cas: Cas, found: ConfigMap | None) -> None:
        place = Place()
        place.tell(**good(cas))
        place.lookup.take(found)
        assert place.trouble()
        assert (place.name(proxy(cas.clients, "bob")), place.name(proxy(cas.front))) == ("bob", "alice")

    def test_that_it_may_not_be_read_is_said_with_the_repair(self) -> None:
        place = Place()
        place.lookup.failed(error_of_answer("GET /api/v1/…", 403, b'{"message": "forbidden"}'))
        assert "extension-apiserver-authentication-reader" in place.trouble()

    def test_the_same_ca_for_both_needs_allowed_names(self, cas: Cas, caplog: pytest.LogCaptureFixture) -> None:
        place = Place()
        open_to_all = good(cas) | {"client_ca_file": pem(cas.front), "requestheader_allowed_names": "[]"}
        place.tell(**open_to_all)
        place.tell(**open_to_all)
        assert place.name(proxy(cas.front)) == 403
        assert "an authority in common" in place.trouble()
        assert len([record for record in caplog.records if "refused" in record.message]) == 1
        place.tell(**open_to_all | {"requestheader_allowed_names": f'["{NAME}"]'})
        assert place.trouble() == ""
        assert place.name(proxy(cas.front)) == "alice"
        assert place.name(proxy(cas.front, "bob")) == "bob", "a client's own certificate"

    def test_a_client_ca_that_becomes_the_same_is_refused_and_what_was_good_stays(self, cas: Cas) -> None:
        place = Place()
        place.tell(**good(cas) | {"requestheader_allowed_names": "[]"})
        place.tell(**good(cas) | {"requestheader_allowed_names": "[]", "client_ca_file": pem(cas.clients, cas.front)})
        assert (place.name(proxy(cas.clients, "bob")), place.name(proxy(cas.front))) == ("bob", "alice")
        assert place.trouble()


class TestFlags:
    def test_flags_win_over_the_config_map(self, cas: Cas) -> None:
        flags = FrontProxySettings(cas.other.ca_file, (NAME,))
        place = Place(MaterialSettings(flags, looked_up=True))
        assert place.name(proxy(cas.other)) == "alice"
        place.tell(**good(cas))
        assert (place.name(proxy(cas.other)), place.name(proxy(cas.front))) == ("alice", 403)
        assert place.name(proxy(cas.clients, "bob")) == "bob", "what no flag says is looked up"

    def test_a_client_ca_by_flag_wins_too(self, cas: Cas) -> None:
        place = Place(MaterialSettings(None, cas.other.ca_file, looked_up=True))
        place.tell(**good(cas))
        assert place.name(proxy(cas.other, "bob")) == "bob"
        assert place.name(proxy(cas.clients)) == 403
        assert place.name(proxy(cas.front)) == "alice"

    def test_the_same_ca_in_both_files_is_an_error_at_the_start(self, cas: Cas) -> None:
        with pytest.raises(IdentitySettingsError, match="an authority in common"):
            CallerCAs(MaterialSettings(FrontProxySettings(cas.front.ca_file), cas.front.ca_file))
        CallerCAs(MaterialSettings(FrontProxySettings(cas.front.ca_file, (NAME,)), cas.front.ca_file))

    def test_a_client_ca_file_that_is_replaced_is_taken_in_within_a_second(self, cas: Cas, tmp_path: Path) -> None:
        file = tmp_path / "clients.crt"
        file.write_text(pem(cas.clients))
        now = [0.0]
        materials = CallerCAs(MaterialSettings(client_ca_file=file), clock=lambda: now[0])
        gate = Gate(materials)
        replace_file(file, pem(cas.other))
        assert gate.identify(proxy(cas.clients, "bob"), ()).name == "bob"
        now[0] += LOOK_SECONDS
        assert gate.identify(proxy(cas.other, "carol"), ()).name == "carol"
        with pytest.raises(AccessForbiddenError):
            gate.identify(proxy(cas.clients, "bob"), ())
        replace_file(file, "broken")
        now[0] += LOOK_SECONDS
        assert gate.identify(proxy(cas.other, "carol"), ()).name == "carol"

    def test_a_config_map_that_was_refused_for_a_file_is_taken_in_once_the_file_changes(
        self, cas: Cas, tmp_path: Path
    ) -> None:
        file = tmp_path / "clients.crt"
        file.write_text(pem(cas.other))
        now = [0.0]
        materials = CallerCAs(MaterialSettings(client_ca_file=file, looked_up=True), clock=lambda: now[0])
        lookup, gate = Lookup(materials), Gate(materials)
        data = {"requestheader-client-ca-file": pem(cas.other), "requestheader-allowed-names": "[]"}
        for _ in range(2):
            lookup.take(config_map_with(msgspec.json.encode(data)))
            assert "an authority in common" in (lookup.trouble or "")
        replace_file(file, pem(cas.clients))
        now[0] += LOOK_SECONDS
        assert gate.identify(proxy(cas.other), ALICE).name == "alice"
        assert lookup.trouble is None


class TestClientCertificates:
    @pytest.fixture(name="place")
    def _place(self, cas: Cas) -> Place:
        place = Place()
        place.tell(**good(cas))
        return place

    def test_the_common_name_is_the_user_and_organizations_are_the_groups(self, place: Place, cas: Cas) -> None:
        caller = place.who(Peer(cas.clients.client("bob", ["team-a", "team-b"]).chain))
        assert caller == Caller("bob", ("team-a", "team-b", "system:authenticated"), Via.CLIENT_CERTIFICATE)

    def test_headers_mean_nothing_with_it(self, place: Place, cas: Cas) -> None:
        caller = place.who(proxy(cas.clients, NAME), *ALICE, ("X-Remote-Group", "system:masters"))
        assert (caller.name, caller.groups) == (NAME, ("system:authenticated",))

    def test_the_request_header_ca_makes_nobody_a_user(self, place: Place, cas: Cas) -> None:
        masters = Peer(cas.front.client("somebody", ["system:masters"]).chain)
        assert place.name(masters) == 403
        with pytest.raises(UnauthenticatedError, match="named no user"):
            place.who(Peer(cas.front.client(NAME, ["system:masters"]).chain))

    @pytest.mark.parametrize("common_name", ["system:anonymous", "bob"])
    def test_an_anonymous_name_is_not_authenticated(self, place: Place, cas: Cas, common_name: str) -> None:
        groups = place.who(proxy(cas.clients, common_name)).groups
        assert ("system:authenticated" in groups) == (common_name == "bob")

    def test_a_server_certificate_is_no_client(self, place: Place, cas: Cas) -> None:
        with pytest.raises(UnauthenticatedError, match="extended key usage"):
            place.who(Peer(cas.clients.client("bob", usages=SERVER).chain))

    def test_an_expired_one_is_nobody(self, place: Place, cas: Cas) -> None:
        with pytest.raises(UnauthenticatedError, match="expired"):
            place.who(Peer(cas.clients.client("bob", validity=of_yesterday()).chain))

    def test_a_ca_of_the_same_name_is_another(self, place: Place, tmp_path: Path) -> None:
        impostor = Authority(tmp_path / "impostor", "clients")
        assert place.name(proxy(impostor, "bob")) == 403

    def test_a_clients_own_certificate_in_the_bundle_vouches_for_no_other(self, cas: Cas) -> None:
        pinned = cas.other.client("pinned")
        place = Place()
        place.tell(**good(cas) | {"client_ca_file": pinned.certificate_file.read_text()})
        assert place.name(Peer(pinned.chain)) == "pinned"
        assert place.name(proxy(cas.other, "bob")) == 403


def test_the_bundle_may_hold_a_root_that_tls_did_not_end_the_chain_in(tmp_path: Path) -> None:
    """TLS ends a chain where it first finds trust: here at the intermediate, which another bundle holds."""
    authority = Authority(tmp_path / "ca", intermediate=True)
    leaf, middle, _root = authority.client("bob").chain
    gate = Gate(CallerCAs(MaterialSettings(client_ca_file=authority.ca_file)))
    assert gate.identify(Peer((leaf, middle)), ()).name == "bob"
    assert gate.identify(Peer((leaf, middle, b"another CA's copy of the root")), ()).name == "bob"


def test_the_keys_and_places_are_those_of_kubernetes() -> None:
    assert authentication_config_map.NAMESPACE == "kube-system"
    assert authentication_config_map.NAME == "extension-apiserver-authentication"
