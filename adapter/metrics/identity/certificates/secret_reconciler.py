"""Keeps the serving certificate in a Secret, and its authority in the APIServices: the effects of `rotation_decision`.

`CertificateKeeper.look` reads the state, decides, and makes the changes. Any number of replicas may call it at the same
time, and it may be interrupted anywhere: the next look continues from the state that it finds.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError, StatusError
from adapter.foundation.sources.kubernetes.writing import CONFLICT, Reply
from adapter.metrics.identity.certificates import apiservices, certificate_secret, rotation_decision
from adapter.metrics.identity.certificates.apiservices import ApiServiceState, NotThere, Registered
from adapter.metrics.identity.certificates.certificate_secret import Absent, Content, Found, SecretState, Unreadable
from adapter.metrics.identity.certificates.generations import Generation, make_generation
from adapter.metrics.identity.certificates.rotation_decision import ObservedState, RotationProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cryptography import x509

    from adapter.metrics.identity.certificates.certificate_telemetry import CertificateMetrics
    from adapter.metrics.identity.certificates.rotation_decision import SecretChange, WantedCertificate

LIFE = timedelta(days=90)
LONGEST_SETTLING_SECONDS = 60.0
"""How long the APIServices must hold a new authority before its certificate is presented: each kube-apiserver learns of
the authority by a separate watch."""
LONGEST_PAUSE_SECONDS = 15.0
_ROUNDS = 5
"""Limit on changes of the Secret in one look; if other programs keep changing it, the next look continues."""

_log = logging.getLogger(__name__)


class Objects(Protocol):
    """The requests to the API server (`sources.kubernetes.writing.ObjectClient`)."""

    def get(self, path: str) -> Reply:
        """Return the object at a path."""

    def create(self, collection: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object in a collection."""

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Apply a JSON merge patch."""


@dataclass(frozen=True, slots=True)
class Times:
    """The validity of certificates, and the clocks."""

    life: timedelta = LIFE
    wall_clock: Callable[[], datetime] = lambda: datetime.now(tz=UTC)
    clock: Callable[[], float] = time.monotonic
    """Returns monotonic seconds."""

    @property
    def settling_seconds(self) -> float:
        """How long an authority must have been published before its certificate is presented."""
        return min(LONGEST_SETTLING_SECONDS, self.life.total_seconds() / 30)

    @property
    def pause_seconds(self) -> float:
        """How long to wait between two looks if there is no problem."""
        return min(LONGEST_PAUSE_SECONDS, self.life.total_seconds() / 100)


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look."""

    confirmed: bool
    """Whether the Secret holds a certificate, and the presented one is signed by an authority in its `ca.crt`."""
    trusted: bool
    """Whether all APIServices that point to this program are known to trust the presented certificate."""
    problems: tuple[RotationProblem, ...]
    """Failed steps, with the reasons."""


class CertificateKeeper:
    """Keeps the certificate for one replica. Not thread-safe."""

    def __init__(
        self,
        wanted: WantedCertificate,
        objects: Objects,
        show: Callable[[Generation], None],
        *,
        manager: str,
        shown: Generation | None = None,
        times: Times = Times(),
        events: CertificateMetrics | None = None,
    ) -> None:
        """Keep the certificate that `wanted` describes, with the requests of `objects`.

        `show` is called with each generation that new connections should see; `shown` is the one that they already see.
        `manager` is the program's name, which labels the Secret.
        """
        self.shown = shown
        self._wanted = wanted
        self._objects = objects
        self._show = show
        self._manager = manager
        self._times = times
        self._events = events
        self._trusted_since: dict[x509.Certificate, float] = {}
        """Authorities that all APIServices hold, each with the time since which every look has found that."""

    def look(self) -> Look:
        """Look once, and make the changes that are needed. Raises OSError if `show` does."""
        for _ in range(_ROUNDS):
            observed = self._observe()
            change = rotation_decision.secret_change(observed, self._wanted, self._issue)
            failure = self._change_secret(change) if change else None
            if change and not failure:
                # Changed by this replica, or by another one before it.
                continue
            found = (*rotation_decision.problems(observed, self._wanted), *([failure] if failure else []))
            if isinstance(observed.secret, Found):
                return self._follow_secret(observed, observed.secret.content, found)
            return Look(confirmed=False, trusted=False, problems=found)
        fight = RotationProblem(
            f"secret {self._wanted.secret}", "another program changes it again and again: find out which one"
        )
        return Look(confirmed=False, trusted=False, problems=(fight,))

    def _follow_secret(self, observed: ObservedState, content: Content, found: tuple[RotationProblem, ...]) -> Look:
        """Publish and present the certificate in the Secret."""
        states = dict(observed.apiservices)
        failures = self._publish(states, content)
        chosen = rotation_decision.generation_to_present(observed, states, content, self._wanted)
        if chosen != self.shown:
            self._show(chosen)
            self.shown = chosen
            about = {"not_after": chosen.certificate.not_valid_after_utc.isoformat()}
            _log.info("new connections get another serving certificate", extra={"fields": about})
        self._report(chosen, states)
        trusted = rotation_decision.trusted_everywhere(states, chosen.authority, self._wanted)
        return Look(confirmed=True, trusted=trusted, problems=(*found, *failures))

    def _observe(self) -> ObservedState:
        states = {name: self._apiservice(name) for name in self._wanted.apiservices}
        secret = self._secret()
        settled = self._settled_authorities(secret.content if isinstance(secret, Found) else None, states)
        return ObservedState(self._times.wall_clock(), states, secret, self.shown, settled)

    def _apiservice(self, name: str) -> ApiServiceState:
        try:
            return apiservices.read_apiservice(self._objects.get(f"{apiservices.PATH}/{name}").document)
        except NotFoundError:
            return NotThere()
        except KubernetesError as e:
            return Unreadable(_with_repair(e, _apiservice_rights(name)))

    def _secret(self) -> SecretState:
        try:
            return certificate_secret.read_secret(self._objects.get(self._secret_path()).document)
        except NotFoundError:
            return Absent()
        except KubernetesError as e:
            return Unreadable(_with_repair(e, self._secret_rights()))

    def _settled_authorities(
        self, content: Content | None, states: Mapping[str, ApiServiceState]
    ) -> frozenset[x509.Certificate]:
        """Return the authorities that all APIServices have held for long enough."""
        now = self._times.clock()
        self._trusted_since = {
            authority: self._trusted_since.get(authority, now)
            for authority in (content.authorities if content else ())
            if rotation_decision.trusted_everywhere(states, authority, self._wanted)
        }
        settling = self._times.settling_seconds
        return frozenset(authority for authority, since in self._trusted_since.items() if now - since >= settling)

    def _issue(self, names: Iterable[str]) -> Generation:
        return make_generation(names, self._times.wall_clock(), self._times.life)

    def _change_secret(self, change: SecretChange) -> RotationProblem | None:
        """Change the Secret, unless another client changed it first; return the problem if that fails."""
        wanted = self._wanted.secret
        try:
            if change.version is None:
                collection = self._secret_path().rpartition("/")[0]
                self._objects.create(collection, certificate_secret.new_secret(wanted, change.content, self._manager))
            else:
                self._objects.merge(
                    self._secret_path(), certificate_secret.secret_patch(change.version, change.content)
                )
        except KubernetesError as e:
            if _is_conflict(e):
                return None
            rights = self._secret_rights(creating=change.version is None)
            return RotationProblem(f"secret {wanted}", f"it cannot be written: {_with_repair(e, rights)}")
        about = {"secret": str(wanted), "reason": change.reason}
        _log.log(change.level, "changed the Secret of the serving certificate", extra={"fields": about})
        return None

    def _publish(self, states: dict[str, ApiServiceState], content: Content) -> list[RotationProblem]:
        """Update the APIServices and `states`; return a problem for each APIService that could not be updated."""
        failures = []
        for name, state in rotation_decision.bundle_changes(states, content, self._wanted).items():
            try:
                patch = apiservices.bundle_patch(state.version, content.authorities)
                self._objects.merge(f"{apiservices.PATH}/{name}", patch)
            except KubernetesError as e:
                if not _is_conflict(e):
                    message = f"it cannot be patched: {_with_repair(e, _apiservice_rights(name))}"
                    failures.append(RotationProblem(f"apiservice {name}", message))
                continue
            states[name] = replace(state, authorities=frozenset(content.authorities))
            about = {"apiservice": name, "authorities": len(content.authorities)}
            _log.info("updated the caBundle of an APIService", extra={"fields": about})
        return failures

    def _report(self, shown: Generation, states: Mapping[str, ApiServiceState]) -> None:
        if self._events is None:
            return
        self._events.set_dates(shown)
        for name, state in states.items():
            self._events.set_trust(name, held=isinstance(state, Registered) and shown.authority in state.authorities)

    def _secret_rights(self, *, creating: bool = False) -> str:
        wanted = self._wanted.secret
        if not creating:
            return f"get and patch on the secret {wanted}"
        mark = f"{certificate_secret.OURS}={certificate_secret.SELF_MADE}"
        return f"create on secrets in {wanted.namespace}, or create it empty with the annotation {mark}"

    def _secret_path(self) -> str:
        return f"/api/v1/namespaces/{self._wanted.secret.namespace}/secrets/{self._wanted.secret.name}"


def _is_conflict(error: KubernetesError) -> bool:
    return isinstance(error, StatusError) and error.code == CONFLICT


def _apiservice_rights(name: str) -> str:
    return f"get and patch on the apiservice {name} (apiregistration.k8s.io)"


def _with_repair(error: KubernetesError, rights: str) -> str:
    return f"{error}: grant {rights}" if isinstance(error, ForbiddenError) else str(error)
