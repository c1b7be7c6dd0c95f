"""The serving certificate in a Secret: what others damage, what belongs to others, and missing rights."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.names import ObjectName
from adapter.metrics.identity.certificates import issuing
from adapter.metrics.identity.certificates.generations import bundle_pem
from tests.adapter.metrics.identity.certificates.keeping_harness import (
    CUSTOM,
    EXTERNAL,
    SECRET,
    WANTED,
    Cluster,
    Replica,
    apiservice,
)
from tests.adapter.metrics.identity.certificates.rotating import SETTLED, TO_ROTATION
from tests.support.apiserver_kinds import APISERVICES, SECRETS

if TYPE_CHECKING:
    from tests.support.apiserver_store import Json


def edit(cluster: Cluster, **data: bytes | None) -> None:
    """Change keys of the Secret by hand; `_` in a name stands for the dot."""

    def change(secret: Json) -> None:
        for key, value in data.items():
            name = key.replace("_", ".")
            secret["data"].pop(name, None)
            if value is not None:
                secret["data"][name] = base64.b64encode(value).decode()

    cluster.store.change(SECRETS, SECRET.namespace, SECRET.name, change)


def rotate_beside(cluster: Cluster, replica: Replica) -> None:
    """Let a replica complete a rotation, whatever it reports about objects that are not ours."""
    before = replica.serving
    cluster.advance(TO_ROTATION)
    for _ in range(3):
        replica.look()
        cluster.advance(SETTLED)
    assert replica.serving != before


class TestDamage:
    @pytest.mark.parametrize(
        "data",
        [
            {"tls_key": b"-----BEGIN NONSENSE-----"},
            {"tls_crt": b""},
            {"ca_crt": b""},
            {"ca_crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
            {"next_crt": b"nothing"},
            {"tls_crt": b"", "tls_key": b"", "ca_crt": None},
        ],
    )
    def test_a_damaged_secret_of_ours_is_restored_from_memory(
        self, cluster: Cluster, data: dict[str, bytes | None]
    ) -> None:
        replica = Replica(cluster)
        replica.look()
        before = replica.serving
        edit(cluster, **data)
        assert replica.look().problems == ()
        assert cluster.content.current == before
        assert replica.shown == [before]
        assert cluster.trusts(before)

    def test_a_deleted_secret_is_recreated_with_the_presented_certificate(self, cluster: Cluster) -> None:
        replica = Replica(cluster)
        replica.look()
        cluster.store.remove(SECRETS, SECRET.namespace, SECRET.name)
        replica.look()
        assert cluster.content.current == replica.serving
        assert len(replica.shown) == 1

    def test_a_fresh_replica_makes_a_new_certificate_and_leaves_the_old_one_trusted(self, cluster: Cluster) -> None:
        running = Replica(cluster)
        running.look()
        cluster.store.remove(SECRETS, SECRET.namespace, SECRET.name)
        fresh = Replica(cluster)
        fresh.look()
        assert cluster.trusts(running.serving)
        assert cluster.trusts(fresh.serving)
        for _ in range(2):
            running.look()
            cluster.advance(SETTLED)
        assert running.serving == fresh.serving

    def test_a_foreign_secret_is_neither_changed_nor_used(self, cluster: Cluster) -> None:
        theirs = {"type": "kubernetes.io/tls", "data": {"tls.crt": "Zm9v", "tls.key": "YmFy"}}
        cluster.store.put(SECRETS, SECRET.namespace, SECRET.name, theirs)
        version = cluster.store.version
        replica = Replica(cluster)
        look = replica.look()
        assert not look.confirmed
        assert "not made by this program" in look.problems[0].message
        assert cluster.store.version == version
        assert replica.shown == []

    def test_an_emptied_caBundle_is_filled_again(self, cluster: Cluster) -> None:  # noqa: N802 - its name
        replica = Replica(cluster)
        replica.look()
        cluster.store.change(APISERVICES, "", CUSTOM, lambda one: one["spec"].update(caBundle=""))
        replica.look()
        assert cluster.trusts(replica.serving)
        assert len(replica.shown) == 1

    def test_a_foreign_authority_that_never_expires_does_no_harm(self, cluster: Cluster) -> None:
        """RFC 5280 writes "no well-defined expiration date" as the last second of the year 9999."""
        replica = Replica(cluster)
        replica.look()
        forever = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        added = issuing.make_authority(cluster.now, forever - cluster.now).certificate
        edit(cluster, ca_crt=bundle_pem((*cluster.content.authorities, added)))
        assert replica.look().trusted
        assert added in cluster.published()

    def test_repeated_damage_does_not_grow_the_objects_without_bound(self, cluster: Cluster) -> None:
        for _ in range(20):
            Replica(cluster).look()
            cluster.store.remove(SECRETS, SECRET.namespace, SECRET.name)
            cluster.advance(timedelta(minutes=1))
        assert len(cluster.published()) == 8


class TestApiServices:
    def test_only_the_caBundle_is_changed(self, cluster: Cluster) -> None:  # noqa: N802 - its name
        before = cluster.store.get_without_rights(APISERVICES, "", CUSTOM)
        Replica(cluster).look()
        after = cluster.store.get_without_rights(APISERVICES, "", CUSTOM)
        assert after["spec"].pop("caBundle")
        assert after["spec"] == before["spec"]

    def test_a_change_based_on_an_outdated_state_is_not_applied(self, cluster: Cluster) -> None:
        replica = Replica(cluster)

        def point_elsewhere(method: str, path: str) -> None:
            if method == "PATCH" and path.endswith(CUSTOM):
                cluster.before = lambda _method, _path: None
                cluster.store.put(APISERVICES, "", CUSTOM, apiservice(CUSTOM, ObjectName("keda", "keda")))

        cluster.before = point_elsewhere
        look = replica.look()
        assert not look.trusted
        assert cluster.published(CUSTOM) == frozenset()
        assert "belongs to the Service keda/keda" in replica.look().problems[0].message

    def test_unconfigured_apiservices_are_not_read(self, cluster: Cluster) -> None:
        other = "v1beta1.metrics.k8s.io"
        cluster.store.put(APISERVICES, "", other, apiservice(other))
        requested: list[str] = []
        cluster.before = lambda _method, path: requested.append(path)
        Replica(cluster).look()
        assert not any(other in path for path in requested)
        assert not any(path.endswith("apiservices") for path in requested)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (apiservice(EXTERNAL, ObjectName("keda", "keda")), "belongs to the Service keda/keda, not to"),
            (apiservice(EXTERNAL, None), "kube-apiserver serves it itself"),
            (apiservice(EXTERNAL, insecureSkipTLSVerify=True), "set it to false"),
            (None, "does not exist"),
        ],
    )
    def test_a_foreign_apiservice_is_not_changed_and_does_not_block_the_rotation(
        self, cluster: Cluster, changed: Json | None, message: str
    ) -> None:
        cluster.store.remove(APISERVICES, "", EXTERNAL)
        if changed:
            cluster.store.put(APISERVICES, "", EXTERNAL, changed)
        before = cluster.store.find(APISERVICES, "", EXTERNAL)
        replica = Replica(cluster)
        look = replica.look()
        assert look.confirmed
        assert [problem.about for problem in look.problems] == [f"apiservice {EXTERNAL}"]
        assert message in look.problems[0].message
        rotate_beside(cluster, replica)
        assert cluster.trusted_by(CUSTOM, replica.serving)
        assert cluster.store.find(APISERVICES, "", EXTERNAL) == before

    @pytest.mark.parametrize("call", range(8))
    def test_the_apiservice_of_metrics_server_is_not_changed_whenever_it_takes_over(
        self, cluster: Cluster, call: int
    ) -> None:
        """The APIService is ours at first, and belongs to another installation from this call of the later looks on."""
        name = "v1beta1.metrics.k8s.io"
        cluster.store.put(APISERVICES, "", name, apiservice(name))
        replica = Replica(cluster, replace(WANTED, apiservices=(name, *WANTED.apiservices)))
        assert replica.look().trusted
        # What another installs has no bundle, or its own; and all three are to be filled again.
        for one in (name, *WANTED.apiservices):
            cluster.store.put(APISERVICES, "", one, apiservice(one))
        theirs = apiservice(name, ObjectName("kube-system", "metrics-server"))
        calls: list[str] = []

        def take_over(method: str, path: str) -> None:
            if len(calls) == call:
                cluster.store.put(APISERVICES, "", name, theirs)
            calls.append(f"{method} {path}")

        cluster.before = take_over
        for _ in range(3):
            replica.look()
        assert len(calls) > call
        rotate_beside(cluster, replica)
        found = cluster.store.get_without_rights(APISERVICES, "", name)
        assert found["spec"] == theirs["spec"]
        assert cluster.trusts(replica.serving)
        assert "belongs to the Service kube-system/metrics-server" in replica.look().problems[0].message

    def test_an_apiservice_filled_by_cert_manager_is_not_changed(self, cluster: Cluster) -> None:
        injected = apiservice(EXTERNAL)
        injected["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from-secret": str(SECRET)}
        cluster.store.put(APISERVICES, "", EXTERNAL, injected)
        version = cluster.store.get_without_rights(APISERVICES, "", EXTERNAL)["metadata"]["resourceVersion"]
        replica = Replica(cluster)
        look = replica.look()
        assert "cert-manager.io/inject-ca-from-secret" in look.problems[0].message
        assert cluster.store.get_without_rights(APISERVICES, "", EXTERNAL)["metadata"]["resourceVersion"] == version


class TestRights:
    @pytest.mark.parametrize(
        ("verb", "message"),
        [("get", f"grant get and patch on the secret {SECRET}"), ("create", "grant create on secrets in monitoring")],
    )
    def test_without_a_required_right_no_certificate_is_presented_and_the_right_is_named(
        self, cluster: Cluster, verb: str, message: str
    ) -> None:
        cluster.store.deny(verb, "secrets")
        replica = Replica(cluster)
        look = replica.look()
        assert not look.confirmed
        assert f"cannot {verb}" in look.problems[0].message
        assert message in look.problems[0].message
        assert replica.shown == []
        cluster.store.allow(verb, "secrets")
        assert replica.look().problems == ()
        assert cluster.trusts(replica.serving)

    def test_an_unwritable_secret_delays_only_the_rotation(self, cluster: Cluster) -> None:
        replica = Replica(cluster)
        replica.look()
        first = replica.serving
        cluster.store.deny("patch", "secrets")
        cluster.store.change(APISERVICES, "", CUSTOM, lambda one: one["spec"].pop("caBundle"))
        cluster.advance(TO_ROTATION)
        look = replica.look()
        assert [problem.about for problem in look.problems] == [f"secret {SECRET}"]
        assert "it cannot be written" in look.problems[0].message
        assert replica.serving == first
        assert cluster.trusts(first)

    def test_no_message_contains_any_part_of_a_key(self, cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("DEBUG")
        replica = Replica(cluster)
        replica.look()
        edit(cluster, tls_key=b"-----BEGIN PRIVATE KEY-----\nverysecret\n-----END PRIVATE KEY-----\n")
        look = replica.look()
        cluster.store.deny("*", "secrets")
        problems = (*look.problems, *replica.look().problems)
        output = caplog.text + "".join(problem.message for problem in problems) + repr(replica.serving)
        assert "PRIVATE" not in output
        assert "verysecret" not in output
