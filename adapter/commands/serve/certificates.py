"""`serve` with a certificate of its own from a Secret: flags, the first certificate, and the task that keeps it.

The first look is made before a port is opened, so that all replicas show the same from their first connection on. Where
the Secret cannot be read or made, the process ends and says why: a certificate that only this replica knows would be
refused by kube-apiserver, at random from the view of its callers.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from adapter.commands.program import PROGRAM
from adapter.commands.serve.lister_cluster import lister_cluster
from adapter.identity.certificates.certificate_secret import ObjectName
from adapter.identity.certificates.certificate_telemetry import CertificateMetrics
from adapter.identity.certificates.keeping import LIFE, CertificateKeeper, Times
from adapter.identity.certificates.kept_file import FILE, read_kept, write_kept
from adapter.identity.certificates.rotation import WantedCertificate
from adapter.identity.certificates.serving import ServingCertificate
from adapter.objects.names import is_namespace_name, is_object_name
from adapter.options.clients import kubernetes_client
from adapter.service.flags.parsing import UsageError
from adapter.service.flags.table import DURATION, TEXT, Flag, Repeat
from adapter.service.runtime.errors import StartError
from adapter.service.runtime.logs import StateLog
from adapter.sources.kubernetes.errors import KubernetesError
from adapter.sources.kubernetes.writing import ObjectClient
from adapter.timing.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from adapter.identity.certificates.generations import Generation
    from adapter.identity.certificates.keeping import Events
    from adapter.identity.certificates.rotation import RotationProblem
    from adapter.options.cluster import ClusterSettings
    from adapter.service.flags.table import FlagValues
    from adapter.service.runtime.tasks import Stop
    from adapter.service.server.context import WorkerContext

SHORTEST_LIFE_SECONDS = 60.0
FIRST_LOOK_SECONDS = 30.0
"""For how long the first certificate is waited for, and that it is trusted: rights may come a moment after the pod."""

_GROUP = "Serving"
_log = logging.getLogger(__name__)

CERTIFICATE_FLAGS: tuple[Flag, ...] = (
    Flag(
        name="serving-secret",
        kind=TEXT,
        help=(
            "NAMESPACE/NAME of a Secret in which a self-made serving certificate is kept, the same for all replicas, "
            "and rotated. Needs --service and --apiservice."
        ),
        group=_GROUP,
    ),
    Flag(
        name="service",
        kind=TEXT,
        help="NAMESPACE/NAME of the Service in front of this program: whom that certificate is for.",
        group=_GROUP,
    ),
    Flag(
        name="apiservice",
        kind=TEXT,
        repeat=Repeat.EACH,
        help=(
            "APIService whose caBundle is to trust that certificate (v1beta1.custom.metrics.k8s.io); may be repeated. "
            "Only those that point to --service are changed."
        ),
        group=_GROUP,
    ),
    Flag(
        name="serving-certificate-life",
        kind=DURATION,
        default=LIFE.total_seconds(),
        help="How long that certificate holds; the next one takes over after two thirds of it.",
        group=_GROUP,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCertificate:
    """A serving certificate that is kept in a Secret."""

    wanted: WantedCertificate
    file: Path
    life: timedelta
    cluster: ClusterSettings

    def keeper(self, events: Events | None = None) -> CertificateKeeper:
        """Return this replica's part in keeping it; goes on from the file. Raises KubernetesError."""
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
    """Return what the flags ask for; None where they name no Secret. Raises UsageError."""
    secret = values.text("serving-secret")
    if not secret:
        _refuse_without_secret(values)
        return None
    if values.path("tls-cert-file") or values.path("tls-private-key-file"):
        raise UsageError("--serving-secret and --tls-cert-file exclude each other: give one")
    if not values.text("service") or not values.texts("apiservice"):
        raise UsageError("--serving-secret needs --service=NAMESPACE/NAME and --apiservice=NAME: give both")
    folder, life = values.path("cert-dir"), values.seconds("serving-certificate-life")
    if folder is None:
        raise UsageError("--cert-dir is empty: name a writable folder for the certificate that is shown")
    if life < SHORTEST_LIFE_SECONDS:
        raise UsageError(f"--serving-certificate-life is {life:g} s: a rotation needs {SHORTEST_LIFE_SECONDS:g} s")
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
            raise UsageError(f"--{name} means nothing without --serving-secret: give it too, or leave both away")


def object_name(flag: str, text: str) -> ObjectName:
    """Return what a flag of the form NAMESPACE/NAME names; raises UsageError."""
    namespace, slash, name = text.partition("/")
    if not slash or not is_namespace_name(namespace) or not is_object_name(name):
        raise UsageError(f"--{flag}: {text!r} is not NAMESPACE/NAME")
    return ObjectName(namespace, name)


def apiservice_name(name: str) -> str:
    """Return the name if an APIService can have it; raises UsageError."""
    if not is_object_name(name) or "." not in name:
        raise UsageError(f"--apiservice: {name!r} is no name of an APIService, such as v1beta1.custom.metrics.k8s.io")
    return name


def first_certificate(
    kept: KeptCertificate,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> ServingCertificate:
    """Return the certificate to show at first, once it is in the Secret and the APIServices trust it.

    Raises StartError if it is not in the Secret within half a minute. An APIService that does not trust it by then is
    trouble that is logged, and does not keep the others from being served.
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
                not_after = keeper.shown.certificate.not_valid_after_utc
                return ServingCertificate(kept.file, kept.file, None, not_after)
            if late:
                raise StartError(_cannot_start(kept, look.problems))
            sleep(pause)
    except KubernetesError as e:
        raise StartError(f"no serving certificate: {e}") from e
    except OSError as e:
        raise StartError(f"{kept.file}: cannot be written ({e.strerror}): give a writable --cert-dir") from e


def _cannot_start(kept: KeptCertificate, problems: Sequence[RotationProblem]) -> str:
    about = f"secret {kept.wanted.secret}"
    causes = [problem.message for problem in problems if problem.about == about]
    return f"no serving certificate: {about}: {'; '.join(causes) or 'others change it again and again'}"


def keep_certificate(kept: KeptCertificate, context: WorkerContext) -> None:
    """Start the task of the worker that keeps the certificate. Raises StartError."""
    try:
        keeper = kept.keeper(CertificateMetrics(context.registry))
    except KubernetesError as e:
        raise StartError(f"the serving certificate cannot be kept: {e}") from e
    pause_seconds = Times(kept.life).pause_seconds

    def keep(stop: Stop) -> None:
        troubles, backoff = _Troubles(), Backoff(first_seconds=pause_seconds, longest_seconds=60.0)
        while not stop.requested:
            problems = keeper.look().problems
            troubles.report(problems)
            if not problems:
                backoff.reset()
            stop.wait(backoff.delay(pause_seconds) if problems else pause_seconds)

    context.tasks.running("serving certificate", keep)


class _Troubles:
    """Logs what is wrong when it begins, changes and ends."""

    def __init__(self) -> None:
        self._state = StateLog(_log)
        self._known: set[str] = set()

    def report(self, problems: Sequence[RotationProblem]) -> None:
        """Take note of all that is wrong now."""
        by_subject = {problem.about: problem.message for problem in problems}
        for about, message in by_subject.items():
            self._state.failed(about, f"serving certificate: {about}: {message}")
        for about in self._known - by_subject.keys():
            self._state.recovered(about, f"serving certificate: {about}: in order again")
        self._known = set(by_subject)
