"""Keeps the serving certificate of `serve` in a Secret: flags, the first certificate, and the task that renews it.

The Secret is read before a port is opened, so that all replicas present the same certificate from their first
connection on. If the Secret cannot be read or created, the process exits and states the reason: kube-apiserver would
refuse a certificate that only this replica knows, and users would see random failures.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from adapter.commands.serve.lister_cluster import lister_cluster
from adapter.foundation.objects.names import is_object_name
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import ClusterSettings, object_name
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.flags.table import DURATION, TEXT, Flag, FlagValues, Repeat, in_group
from adapter.foundation.service.runtime.errors import StartError
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import ConfigurationError, KubernetesError
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from adapter.foundation.time.backoff import Backoff
from adapter.metrics.identity.certificates.certificate_file import FILE, read_kept, write_kept
from adapter.metrics.identity.certificates.certificate_telemetry import CertificateMetrics
from adapter.metrics.identity.certificates.rotation_decision import RotationProblem, WantedCertificate
from adapter.metrics.identity.certificates.secret_reconciler import LIFE, CertificateKeeper, Times
from adapter.metrics.identity.certificates.self_signed import ServingCertificate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from threading import Event

    from adapter.foundation.service.server.context import WorkerContext
    from adapter.metrics.identity.certificates.generations import Generation

SHORTEST_LIFE_SECONDS = 60.0
FIRST_LOOK_SECONDS = 30.0
"""How long to wait at most until the first certificate exists and is trusted. Roles may be created just after the
pod."""

_GROUP = "Serving"
_log = logging.getLogger(__name__)

CERTIFICATE_FLAGS: tuple[Flag, ...] = in_group(
    _GROUP,
    Flag(
        "serving-secret",
        TEXT,
        "NAMESPACE/NAME of a Secret that holds a self-signed serving certificate, which is the same for all "
        "replicas and is rotated. Needs --service and --apiservice.",
    ),
    Flag(
        "service", TEXT, "NAMESPACE/NAME of the Service in front of this program, for which that certificate is issued."
    ),
    Flag(
        "apiservice",
        TEXT,
        "APIService whose caBundle should trust that certificate (v1beta1.custom.metrics.k8s.io); may be "
        "repeated. Only an APIService that points to --service is changed.",
        repeat=Repeat.EACH,
    ),
    Flag(
        "serving-certificate-life",
        DURATION,
        "Validity of that certificate; the next one replaces it after two thirds of the time.",
        default=LIFE.total_seconds(),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCertificate:
    """The settings for keeping a serving certificate in a Secret."""

    wanted: WantedCertificate
    file: Path
    life: timedelta
    cluster: ClusterSettings

    def keeper(self, events: CertificateMetrics | None = None) -> CertificateKeeper:
        """Return the keeper for this replica, which starts with the certificate in `file`. Raises KubernetesError."""
        return CertificateKeeper(
            self.wanted,
            ObjectClient(kubernetes_client(self.cluster)),
            self._show,
            manager=PROGRAM,
            shown=read_kept(self.file),
            times=Times(self.life),
            events=events,
        )

    def _show(self, generation: Generation) -> None:
        write_kept(self.file, generation)


def kept_certificate(values: FlagValues) -> KeptCertificate | None:
    """Return the settings from the flags; None if they name no Secret. Raises UsageError."""
    secret = values.text("serving-secret")
    if not secret:
        _refuse_without_secret(values)
        return None
    if values.path("tls-cert-file") or values.path("tls-private-key-file"):
        raise UsageError("--serving-secret and --tls-cert-file cannot be combined: set only one")
    if not values.text("service") or not values.texts("apiservice"):
        raise UsageError("--serving-secret needs --service=NAMESPACE/NAME and --apiservice=NAME: set both")
    folder, life = values.path("cert-dir"), values.seconds("serving-certificate-life")
    if folder is None:
        raise UsageError("--cert-dir is empty: name a writable folder for the serving certificate")
    if life < SHORTEST_LIFE_SECONDS:
        raise UsageError(f"--serving-certificate-life is {life:g} s: write at least {SHORTEST_LIFE_SECONDS:g} s")
    return KeptCertificate(
        wanted=WantedCertificate(
            object_name("serving-secret", secret),
            object_name("service", values.text("service")),
            tuple(dict.fromkeys(apiservice_name(name) for name in values.texts("apiservice"))),
        ),
        file=folder / FILE,
        life=timedelta(seconds=life),
        cluster=lister_cluster(values),
    )


def _refuse_without_secret(values: FlagValues) -> None:
    for name in ("service", "apiservice", "serving-certificate-life"):
        if name in values.given:
            raise UsageError(f"--{name} has no effect without --serving-secret: set both, or neither")


def apiservice_name(name: str) -> str:
    """Return the name if it is a valid name of an APIService; raises UsageError otherwise."""
    if not is_object_name(name) or "." not in name:
        raise UsageError(
            f"--apiservice: {name!r} is not the name of an APIService: write one such as v1beta1.custom.metrics.k8s.io"
        )
    return name


def first_certificate(
    kept: KeptCertificate, *, sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic
) -> ServingCertificate:
    """Return the first certificate to present, once it is in the Secret and the APIServices trust it.

    Raises UsageError if these settings lead to no cluster, and StartError if the certificate is not in the Secret
    within half a minute. If an APIService does not trust the certificate by then, the problem is logged, and the other
    APIServices are still served.
    """
    troubles, backoff = _Troubles(), Backoff(first_seconds=0.5, longest_seconds=5.0)
    end = clock() + FIRST_LOOK_SECONDS
    try:
        keeper = kept.keeper()
        while True:
            look = keeper.look()
            troubles.report(look.problems)
            pause = backoff.delay(0.1)
            late = clock() + pause >= end
            if keeper.shown and look.confirmed and (look.trusted or late):
                return ServingCertificate.of(keeper.shown.certificate, kept.file, kept.file)
            if late:
                raise StartError(_cannot_start(kept, look.problems))
            sleep(pause)
    except ConfigurationError as e:
        raise UsageError(f"no serving certificate: {e}") from e
    except KubernetesError as e:
        raise StartError(f"no serving certificate: {e}") from e
    except OSError as e:
        raise StartError(f"{kept.file}: cannot be written ({e.strerror}): set --cert-dir to a writable folder") from e


def _cannot_start(kept: KeptCertificate, problems: Sequence[RotationProblem]) -> str:
    about = f"secret {kept.wanted.secret}"
    causes = [problem.message for problem in problems if problem.about == about]
    return f"no serving certificate: {about}: {'; '.join(causes) or 'another client changes it again and again'}"


def keep_certificate(kept: KeptCertificate, context: WorkerContext) -> None:
    """Start the task that keeps the certificate, in the worker. Raises UsageError."""
    try:
        keeper = kept.keeper(CertificateMetrics(context.registry))
    except KubernetesError as e:
        raise UsageError(f"the serving certificate cannot be kept: {e}") from e
    pause_seconds = Times(kept.life).pause_seconds

    def keep(stop: Event) -> None:
        troubles, backoff = _Troubles(), Backoff(first_seconds=pause_seconds, longest_seconds=60.0)
        problems: tuple[RotationProblem, ...] = ()
        while not stop.is_set():
            try:
                problems = keeper.look().problems
            except OSError as e:
                # The other steps come first; whether their problems have ended is not known.
                file = str(kept.file)
                others = tuple(problem for problem in problems if problem.about != file)
                problems = (*others, RotationProblem(file, _not_written(e)))
            troubles.report(problems)
            if not problems:
                backoff.reset()
            stop.wait(backoff.delay(pause_seconds) if problems else pause_seconds)

    context.tasks.running("serving certificate", keep)


def _not_written(error: OSError) -> str:
    return (
        f"cannot be written ({error.strerror}), so connections keep the former certificate until that expires: "
        "free space in the folder of --cert-dir, or make it writable"
    )


class _Troubles:
    """Logs each problem when it begins, when it changes, and when it ends."""

    def __init__(self) -> None:
        self._state = StateLog(_log)
        self._known: set[str] = set()

    def report(self, problems: Sequence[RotationProblem]) -> None:
        """Log how the current problems differ from those of the previous call."""
        by_subject = {problem.about: problem.message for problem in problems}
        for about, message in by_subject.items():
            self._state.failed(about, f"serving certificate: {about}: {message}")
        for about in self._known - by_subject.keys():
            self._state.recovered(about, f"serving certificate: {about}: resolved")
        self._known = set(by_subject)
