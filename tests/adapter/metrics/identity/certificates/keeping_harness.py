"""A cluster with one Service, one Secret and some APIServices, in which replicas keep their certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from adapter.foundation.objects.names import ObjectName
from adapter.metrics.identity.certificates import apiservices
from adapter.metrics.identity.certificates.certificate_secret import Found, read_secret
from adapter.metrics.identity.certificates.issuing import is_signed_by
from adapter.metrics.identity.certificates.rotation_decision import WantedCertificate
from adapter.metrics.identity.certificates.secret_reconciler import CertificateKeeper, Times
from tests.support.apiserver_kinds import APISERVICES, SECRETS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cryptography import x509

    from adapter.metrics.identity.certificates.certificate_secret import Content
    from adapter.metrics.identity.certificates.certificate_telemetry import CertificateMetrics
    from adapter.metrics.identity.certificates.generations import Generation
    from adapter.metrics.identity.certificates.secret_reconciler import Look

START = datetime(2026, 11, 21, tzinfo=UTC)
SECRET = ObjectName("monitoring", "tidewatch-serving")
SERVICE = ObjectName("monitoring", "tidewatch")
CUSTOM, EXTERNAL = "v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"
WANTED = WantedCertificate(SECRET, SERVICE, (CUSTOM, EXTERNAL))
LIFE = timedelta(days=90)


def apiservice(name: str, service: ObjectName | None = SERVICE, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    version, _, group = name.partition(".")
    where = {"namespace": service.namespace, "name": service.name, "port": 443} if service else None
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": {"group": group, "version": version, "service": where, "groupPriorityMinimum": 100, **spec},
    }


class Cluster:
    """The objects, the time, and what clients trust."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.now = START
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        for name in WANTED.apiservices:
            self.store.put(APISERVICES, "", name, apiservice(name))

    def advance(self, by: timedelta) -> None:
        self.now += by

    def published(self, name: str = CUSTOM) -> frozenset[x509.Certificate]:
        """Return what the API server trusts for an APIService."""
        return apiservices.read_apiservice(self.store.get_without_rights(APISERVICES, "", name)).authorities

    @property
    def content(self) -> Content:
        """Return the content of the Secret, which must be valid."""
        state = read_secret(self.store.get_without_rights(SECRETS, SECRET.namespace, SECRET.name))
        assert isinstance(state, Found), state
        return state.content

    def trusts(self, generation: Generation) -> bool:
        """Return whether the clients of all APIServices accept this certificate now."""
        return all(self.trusted_by(name, generation) for name in WANTED.apiservices)

    def trusted_by(self, name: str, generation: Generation) -> bool:
        return verified(generation.certificate, self.published(name), self.now)


def verified(certificate: x509.Certificate, bundle: Iterable[x509.Certificate], now: datetime) -> bool:
    """Return whether a client that trusts the bundle accepts the certificate, by signature and time."""
    return holds(certificate, now) and any(
        is_signed_by(certificate, authority) and holds(authority, now) for authority in bundle
    )


def holds(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


@dataclass
class Replica:
    """One replica with its own clock."""

    cluster: Cluster
    wanted: WantedCertificate = WANTED
    clock_error: timedelta = timedelta()
    life: timedelta = LIFE
    shown: list[Generation] = field(default_factory=list)
    metrics: CertificateMetrics | None = None
    opened_at: datetime | None = None
    """The time since when it serves: it opens its port once it has seen that its certificate is trusted."""
    keeper: CertificateKeeper = field(init=False)

    def __post_init__(self) -> None:
        self.keeper = CertificateKeeper(
            self.wanted,
            Direct(self.cluster.store, self._before),
            self.shown.append,
            manager="adapter",
            times=Times(self.life, self._wall_clock, self._clock),
            events=self.metrics,
        )

    def _before(self, method: str, path: str) -> None:
        self.cluster.before(method, path)

    def _wall_clock(self) -> datetime:
        return self.cluster.now + self.clock_error

    def _clock(self) -> float:
        return (self.cluster.now - START).total_seconds()

    def look(self) -> Look:
        look = self.keeper.look()
        if look.trusted and self.opened_at is None:
            self.opened_at = self.cluster.now
        return look

    @property
    def serving(self) -> Generation:
        assert self.keeper.shown is not None
        assert self.keeper.shown == self.shown[-1]
        return self.keeper.shown
