"""Decides how the serving certificate must change, from the observed state (pure).

Every replica observes the same Secret and the same APIServices, decides by these functions, and changes the objects
under their resourceVersion, so that one of several concurrent changes wins and the other replicas look again. A
rotation has four steps:

1. *Stage*: after two thirds of the certificate's life, the next one is added to the Secret, and its authority to
   `ca.crt`. All replicas still present the first one.
2. *Publish*: `ca.crt` is copied into the `caBundle` of the APIServices. From then on, both are trusted.
3. *Promote*: when all APIServices have held the new authority for a while, the next certificate becomes the current
   one. Each replica presents it from its next look on, if that look shows that it is trusted.
4. *Retire*: the first authority is removed from `ca.crt` when its certificate has expired. A replica without connection
   to the API server keeps presenting the first one, which is trusted until it expires.

The APIServices are read before the Secret, so the Secret's content is never older than that of an APIService, and a
slow replica cannot remove an authority that a quick one has just published.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from adapter.metrics.identity.certificates.apiservices import ApiServiceState, NotThere, Registered
from adapter.metrics.identity.certificates.certificate_secret import (
    Absent,
    Content,
    Damaged,
    Empty,
    Foreign,
    Found,
    SecretState,
    Unreadable,
)
from adapter.metrics.identity.certificates.issuing import is_self_made, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cryptography import x509

    from adapter.foundation.objects.names import ObjectName
    from adapter.metrics.identity.certificates.generations import Generation, Issue

RETIRED_AFTER = timedelta(minutes=5)
"""How long an authority is kept after its expiry, because this clock may be ahead of the API server's."""
MOST_AUTHORITIES = 8
"""Limit on the authorities in `ca.crt`, which would grow without bound if the Secret were lost repeatedly."""


@dataclass(frozen=True, slots=True)
class WantedCertificate:
    """Where the certificate is kept, and which Service and APIServices it is for."""

    secret: ObjectName
    service: ObjectName
    apiservices: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """The DNS names of the Service; kube-apiserver uses the third."""
        service, namespace = self.service.name, self.service.namespace
        full = f"{service}.{namespace}.svc"
        return frozenset({service, f"{service}.{namespace}", full, f"{full}.cluster.local"})


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The state found by one look."""

    now: datetime
    apiservices: Mapping[str, ApiServiceState]
    """APIServices by name, read before the Secret."""
    secret: SecretState
    shown: Generation | None
    """The generation that this replica presents to its clients."""
    settled: frozenset[x509.Certificate] = frozenset()
    """Authorities that all APIServices have held for long enough."""


@dataclass(frozen=True, slots=True)
class SecretChange:
    """A change of the Secret."""

    content: Content
    version: str | None
    """The resourceVersion to replace; None to create the Secret."""
    reason: str
    level: int = logging.INFO
    """Log level of the change."""


@dataclass(frozen=True, slots=True)
class RotationProblem:
    """A problem that a person must solve."""

    about: str
    message: str


def secret_change(observed: ObservedState, wanted: WantedCertificate, issue: Issue) -> SecretChange | None:
    """Return how the Secret must change; None if it is right, or belongs to another program."""
    match observed.secret:
        case Absent():
            return SecretChange(_restore_content(observed, wanted, issue), None, "it did not exist")
        case Empty(version):
            return SecretChange(_restore_content(observed, wanted, issue), version, "it was empty")
        case Damaged(version, cause):
            return SecretChange(
                _restore_content(observed, wanted, issue), version, f"it could not be used: {cause}", logging.WARNING
            )
        case Found(version, content):
            changed, reason = _advance_content(content, observed, wanted, issue)
            return SecretChange(changed, version, reason) if changed != content else None
        case _:
            return None


def _restore_content(observed: ObservedState, wanted: WantedCertificate, issue: Issue) -> Content:
    """Return content with the generation that this replica presents, or with a new one."""
    shown = observed.shown
    good = shown is not None and shown.covers(wanted.names) and not shown.is_expired(observed.now)
    current = shown if shown and good else issue(wanted.names)
    return _content(current, None, (), observed, wanted)


def _advance_content(
    content: Content, observed: ObservedState, wanted: WantedCertificate, issue: Issue
) -> tuple[Content, str]:
    """Return the content as it must be now, and the reason for a difference."""
    now, current, coming, before = observed.now, content.current, content.next, content.authorities
    next_names = wanted.names
    if coming and not coming.covers(wanted.names):
        # Replicas with other settings have staged it, and would do so again if the next one lacked their names.
        next_names |= names_of(coming.certificate)
        coming = None
    elif coming and coming.is_expired(now):
        coming = None
    if current.is_expired(now):
        return _content(coming or issue(wanted.names), None, before, observed, wanted), "it has expired"
    if not current.covers(wanted.names):
        # No client could verify it. The new one also gets its names, which replicas with older settings may still need.
        names = wanted.names | names_of(current.certificate)
        return _content(issue(names), None, before, observed, wanted), "it is not for the names of the Service"
    if coming and coming.authority in observed.settled:
        return _content(coming, None, before, observed, wanted), "the next one's authority is published"
    if not coming and current.is_due(now):
        return _content(current, issue(next_names), before, observed, wanted), "two thirds of its life are over"
    return _content(current, coming, before, observed, wanted), "the authorities have changed"


def _content(
    current: Generation,
    coming: Generation | None,
    before: Iterable[x509.Certificate],
    observed: ObservedState,
    wanted: WantedCertificate,
) -> Content:
    """Return the content with all needed authorities, including published ones, which other replicas may use."""
    used = (current, coming) if coming else (current,)
    published = {
        authority
        for state in _apiservices_to_convince(observed.apiservices, wanted).values()
        if isinstance(state, Registered)
        for authority in state.authorities
        if is_self_made(authority)
    }
    return Content(current, coming, _kept_authorities({*before, *published}, observed.now, used))


def _kept_authorities(
    authorities: Iterable[x509.Certificate], now: datetime, used: Iterable[Generation]
) -> tuple[x509.Certificate, ...]:
    """Return the authorities that must still be trusted, the oldest first."""
    needed = {one.authority for one in used}
    others = {one for one in authorities if one.not_valid_after_utc > now - RETIRED_AFTER} - needed
    latest = sorted(others, key=_age)[-(MOST_AUTHORITIES - len(needed)) :]
    return tuple(sorted({*latest, *needed}, key=_age))


def _age(authority: x509.Certificate) -> tuple[datetime, int]:
    return authority.not_valid_before_utc, authority.serial_number


def bundle_changes(
    apiservices: Mapping[str, ApiServiceState], content: Content, wanted: WantedCertificate
) -> dict[str, Registered]:
    """Return the APIServices, by name, whose `caBundle` must be replaced by the content's `ca.crt`."""
    return {
        name: state
        for name, state in _apiservices_to_convince(apiservices, wanted).items()
        if isinstance(state, Registered) and not state.injected and state.authorities != set(content.authorities)
    }


def trusted_everywhere(
    apiservices: Mapping[str, ApiServiceState], authority: x509.Certificate, wanted: WantedCertificate
) -> bool:
    """Return whether all APIServices that point to this program are known to trust this authority."""
    return all(
        isinstance(state, Registered) and authority in state.authorities
        for state in _apiservices_to_convince(apiservices, wanted).values()
    )


def generation_to_present(
    observed: ObservedState, apiservices: Mapping[str, ApiServiceState], content: Content, wanted: WantedCertificate
) -> Generation:
    """Return the generation that this replica should present, given the APIServices as they are now.

    It is the current generation once its authority is settled or more APIServices trust it than the presented one.
    """
    current, shown = content.current, observed.shown
    if shown is None or shown.is_expired(observed.now):
        return current
    more = _count_distrusting(apiservices, shown, wanted) - _count_distrusting(apiservices, current, wanted)
    return current if more > 0 or (more == 0 and current.authority in observed.settled) else shown


def _count_distrusting(
    apiservices: Mapping[str, ApiServiceState], generation: Generation, wanted: WantedCertificate
) -> int:
    """Return how many APIServices are known not to trust the generation's authority."""
    states = _apiservices_to_convince(apiservices, wanted).values()
    return sum(isinstance(state, Registered) and generation.authority not in state.authorities for state in states)


def _apiservices_to_convince(
    apiservices: Mapping[str, ApiServiceState], wanted: WantedCertificate
) -> dict[str, ApiServiceState]:
    """Return the APIServices that verify the presented certificate, or may do so because they could not be read."""
    return {name: state for name, state in apiservices.items() if _concerns(state, wanted)}


def _concerns(state: ApiServiceState, wanted: WantedCertificate) -> bool:
    if isinstance(state, Registered):
        return state.service == wanted.service and not state.unverified
    return isinstance(state, Unreadable)


def problems(observed: ObservedState, wanted: WantedCertificate) -> tuple[RotationProblem, ...]:
    """Return the problems that this program cannot or must not solve itself."""
    content = observed.secret.content if isinstance(observed.secret, Found) else None
    found = [_secret_problem(observed.secret, wanted)]
    found += [_apiservice_problem(name, state, content, wanted) for name, state in observed.apiservices.items()]
    return tuple(problem for problem in found if problem)


def _secret_problem(state: SecretState, wanted: WantedCertificate) -> RotationProblem | None:
    about = f"secret {wanted.secret}"
    if isinstance(state, Unreadable):
        return RotationProblem(about, state.cause)
    if isinstance(state, Foreign):
        return RotationProblem(
            about,
            "it was not made by this program and is left alone: name another with --serving-secret, or mount it and "
            "set --tls-cert-file and --tls-private-key-file to its files",
        )
    return None


def _apiservice_problem(
    name: str, state: ApiServiceState, content: Content | None, wanted: WantedCertificate
) -> RotationProblem | None:
    message = _registered_trouble(state, content, wanted) if isinstance(state, Registered) else _missing_trouble(state)
    return RotationProblem(f"apiservice {name}", message) if message else None


def _missing_trouble(state: NotThere | Unreadable) -> str:
    if isinstance(state, Unreadable):
        return state.cause
    return "it does not exist: create it, or remove its --apiservice"


def _registered_trouble(state: Registered, content: Content | None, wanted: WantedCertificate) -> str:
    """Return what keeps the program from filling in the `caBundle`; empty if nothing does."""
    if state.service is None:
        return "kube-apiserver serves it itself: remove its --apiservice"
    if state.service != wanted.service:
        return (
            f"it belongs to the Service {state.service}, not to {wanted.service}, and is left alone: delete it there "
            "first, or remove its --apiservice"
        )
    if state.unverified:
        return (
            "insecureSkipTLSVerify is set, so every certificate is accepted: set it to false, and the caBundle will be "
            "filled in"
        )
    if state.injected and content and not state.authorities.issuperset(content.authorities):
        return (
            f"cert-manager fills in its caBundle (annotation {state.injected}), but not with the ca.crt of the Secret "
            f"{wanted.secret}: remove the annotation, or let cert-manager inject from that Secret"
        )
    return ""
