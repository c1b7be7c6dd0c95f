"""The serving certificate in a Secret: how the first one is made, and how it is rotated."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.objects.names import ObjectName
from adapter.metrics.identity.certificates.certificate_telemetry import CertificateMetrics
from adapter.metrics.identity.certificates.issuing import names_of
from adapter.metrics.identity.certificates.secret_reconciler import Look
from tests.adapter.metrics.identity.certificates.keeping_harness import (
    EXTERNAL,
    LIFE,
    SECRET,
    SERVICE,
    WANTED,
    Cluster,
    Replica,
    apiservice,
)
from tests.adapter.metrics.identity.certificates.rotating import SETTLED, TO_ROTATION
from tests.support.apiserver_kinds import APISERVICES, SECRETS


def rotate(cluster: Cluster, *replicas: Replica) -> None:
    """Let the replicas complete a rotation."""
    cluster.advance(TO_ROTATION)
    for _ in range(3):
        for replica in replicas:
            assert replica.look().problems == ()
        cluster.advance(SETTLED)


def test_the_metrics_are_those_of_the_certificate_in_use(cluster: Cluster) -> None:
    registry = CollectorRegistry()
    replica = Replica(cluster, metrics=CertificateMetrics(registry))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"tidewatch_adapter_serving_certificate_{name}", labels)

    replica.look()
    first = replica.serving
    rotate(cluster, replica)
    assert replica.serving != first
    dates = replica.serving.certificate.not_valid_before_utc, replica.serving.certificate.not_valid_after_utc
    found = value("not_before_timestamp_seconds"), value("not_after_timestamp_seconds")
    assert found == tuple(date.timestamp() for date in dates)
    assert value("published", apiservice=EXTERNAL) == 1
    cluster.store.put(APISERVICES, "", EXTERNAL, apiservice(EXTERNAL, ObjectName("other", "adapter")))
    replica.look()
    assert value("published", apiservice=EXTERNAL) == 0


class TestTheFirstCertificate:
    def test_one_pass_creates_publishes_and_presents_the_certificate(self, cluster: Cluster) -> None:
        replica = Replica(cluster)
        assert replica.look() == Look(confirmed=True, trusted=True, problems=())
        assert cluster.trusts(replica.serving)
        assert names_of(replica.serving.certificate) == {
            "tidewatch",
            "tidewatch.monitoring",
            "tidewatch.monitoring.svc",
            "tidewatch.monitoring.svc.cluster.local",
        }

    def test_clients_whose_clock_lags_accept_the_certificate(self, cluster: Cluster) -> None:
        replica = Replica(cluster, clock_error=timedelta(minutes=10))
        replica.look()
        assert cluster.trusts(replica.serving)

    def test_all_replicas_present_the_same_certificate_whichever_is_first(self, cluster: Cluster) -> None:
        first, second, third = Replica(cluster), Replica(cluster), Replica(cluster)
        waiting = [second, third]

        def overtake(method: str, _path: str) -> None:
            # Both others see no Secret either, and make theirs before this one's arrives.
            if method == "POST" and waiting:
                waiting.pop().look()

        cluster.before = overtake
        first.look()
        for replica in (first, second, third):
            assert replica.look().problems == ()
        assert first.serving == second.serving == third.serving
        assert len(first.shown) == 1, "no replica showed one that lost"
        assert cluster.trusts(first.serving)
        assert len(cluster.published()) == 1

    def test_the_secret_has_the_tls_type_and_holds_no_authority_key(self, cluster: Cluster) -> None:
        Replica(cluster).look()
        secret = cluster.store.get_without_rights(SECRETS, SECRET.namespace, SECRET.name)
        assert secret["type"] == "kubernetes.io/tls"
        assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
        assert secret["metadata"]["annotations"] == {"tidewatch.io/serving-certificate": "self-made"}

    @pytest.mark.parametrize("data", [{}, {"tls.crt": "", "tls.key": ""}])
    def test_a_prepared_empty_secret_is_filled(self, cluster: Cluster, data: dict[str, str]) -> None:
        made = {"metadata": {"annotations": {"tidewatch.io/serving-certificate": "self-made"}}, "data": data}
        cluster.store.put(SECRETS, SECRET.namespace, SECRET.name, made)
        cluster.store.deny("create", "secrets")
        replica = Replica(cluster)
        assert replica.look().problems == ()
        assert cluster.trusts(replica.serving)

    def test_a_correct_state_is_not_changed(self, cluster: Cluster) -> None:
        replicas = [Replica(cluster), Replica(cluster)]
        for replica in replicas:
            replica.look()
        version = cluster.store.version
        for _ in range(3):
            cluster.advance(timedelta(days=1))
            assert [replica.look().problems for replica in replicas] == [(), ()]
        assert cluster.store.version == version
        assert [len(replica.shown) for replica in replicas] == [1, 1]


class TestRotation:
    def test_the_next_certificate_is_presented_only_after_it_has_been_trusted_for_a_while(
        self, cluster: Cluster
    ) -> None:
        replica = Replica(cluster)
        replica.look()
        first = replica.serving
        cluster.advance(TO_ROTATION)
        replica.look()
        coming = cluster.content.next
        assert coming
        assert replica.serving == first
        assert cluster.trusts(coming)
        replica.look()
        cluster.advance(timedelta(seconds=59))
        replica.look()
        assert replica.serving == first
        cluster.advance(timedelta(seconds=2))
        replica.look()
        assert replica.serving == coming
        assert cluster.content.next is None
        assert cluster.trusts(first), "replicas that have not looked yet"

    def test_rotation_waits_for_every_apiservice(self, cluster: Cluster) -> None:
        replica = Replica(cluster)
        replica.look()
        first = replica.serving
        cluster.advance(TO_ROTATION)
        cluster.store.deny("patch", "apiservices")
        for _ in range(3):
            assert len(replica.look().problems) == 2
            cluster.advance(SETTLED)
        assert replica.serving == first
        cluster.store.allow("patch", "apiservices")
        for _ in range(3):
            replica.look()
            cluster.advance(SETTLED)
        assert replica.serving != first
        assert cluster.trusts(replica.serving)

    def test_an_emptied_apiservice_restarts_the_wait(self, cluster: Cluster) -> None:
        replica = Replica(cluster)
        replica.look()
        first = replica.serving
        cluster.advance(TO_ROTATION)
        replica.look()
        replica.look()
        cluster.advance(timedelta(seconds=50))
        cluster.store.change(APISERVICES, "", EXTERNAL, lambda one: one["spec"].pop("caBundle"))
        replica.look()
        cluster.advance(timedelta(seconds=50))
        replica.look()
        assert replica.serving == first

    def test_the_old_authority_is_removed_when_its_certificate_has_expired(self, cluster: Cluster) -> None:
        replica = Replica(cluster)
        replica.look()
        first = replica.serving
        rotate(cluster, replica)
        assert first.authority in cluster.published()
        cluster.advance(LIFE / 3)
        replica.look()
        assert cluster.published() == {replica.serving.authority}

    def test_a_replica_that_missed_a_rotation_is_still_trusted_and_catches_up(self, cluster: Cluster) -> None:
        stays, cut_off = Replica(cluster), Replica(cluster)
        stays.look()
        cut_off.look()
        rotate(cluster, stays)
        assert cut_off.serving != stays.serving
        assert cluster.trusts(cut_off.serving)
        cut_off.look()
        assert cut_off.serving != stays.serving, "it has yet to see for a while that the new one is trusted"
        cluster.advance(SETTLED)
        cut_off.look()
        assert cut_off.serving == stays.serving

    def test_a_certificate_that_expired_while_no_replica_ran_is_replaced_at_once(self, cluster: Cluster) -> None:
        Replica(cluster).look()
        cluster.advance(LIFE * 2)
        replica = Replica(cluster)
        replica.look()
        assert cluster.trusts(replica.serving)
        assert cluster.published() == {replica.serving.authority}

    def test_a_new_service_name_is_added_and_replicas_of_both_names_agree(self, cluster: Cluster) -> None:
        renamed = replace(WANTED, service=ObjectName("monitoring", "adapter"))
        old, new = Replica(cluster), Replica(cluster, wanted=renamed)
        old.look()
        for name in WANTED.apiservices:
            cluster.store.put(APISERVICES, "", name, apiservice(name, renamed.service))
        for _ in range(5):
            new.look()
            old.look()
        assert new.serving.covers(renamed.names | WANTED.names)
        assert len(new.shown) == 1
        assert cluster.trusts(new.serving)

    def test_replicas_of_two_service_names_agree_on_the_next_certificate(self, cluster: Cluster) -> None:
        renamed = replace(WANTED, service=ObjectName("monitoring", "adapter"))
        old, new = Replica(cluster), Replica(cluster, wanted=renamed)
        for replica in (old, new, old):
            replica.look()
        cluster.advance(TO_ROTATION)
        staged = set()
        for _ in range(5):
            for replica in (old, new):
                replica.look()
                staged.add(cluster.content.next)
        coming = cluster.content.next
        assert coming is not None
        assert coming.covers(renamed.names | WANTED.names)
        assert len(staged) == 2


def test_the_certificate_covers_all_names_of_the_service() -> None:
    assert WANTED.names == {
        f"{SERVICE.name}{suffix}" for suffix in ("", ".monitoring", ".monitoring.svc", ".monitoring.svc.cluster.local")
    }
