"""`tidewatch-adapter doctor`: looks at an installation from inside of the cluster for what usually goes wrong.

What is gathered and what is thought of it are apart: the `judge_…` functions of the modules beside this one take what
was found and return a line, `look_at_…` find it. Here it is put together and printed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from adapter.commands.common_flags import (
    CLUSTER_FLAGS,
    LOG_FLAGS,
    PROGRAM,
    PROMETHEUS_FLAGS,
    configure_logs_by,
    program_version,
    prometheus_settings,
)
from adapter.commands.doctor_apiservices import (
    OTHERS,
    Seen,
    judge_apiservice,
    judge_owner,
    look_at_apiservice,
    look_at_request,
)
from adapter.commands.doctor_autoscalers import look_at_hpas, look_at_replicas
from adapter.commands.doctor_callers import look_at_front_proxy
from adapter.commands.doctor_prometheus import look_at_apiserver, look_at_prometheus
from adapter.commands.doctor_report import Status, as_json, as_text, count, unknown
from adapter.commands.doctor_rights import (
    HPA_CONTROLLER,
    Subject,
    look_at_right,
    needs_of_adapter,
    needs_of_hpa_controller,
)
from adapter.commands.doctor_running import Check, run_checks
from adapter.commands.doctor_tls import look_at_certificate
from adapter.commands.serve_certificates import apiservice_name, object_name
from adapter.service.addresses import Address
from adapter.service.flag_table import ADDRESS, TEXT, Command, Flag, Repeat, one_of
from adapter.service.flags import UsageError, exit_for_usage, flags_or_exit
from adapter.sources.kubernetes.access import access
from adapter.sources.kubernetes.client import Deadlines, KubernetesClient
from adapter.sources.kubernetes.errors import KubernetesError
from adapter.sources.kubernetes.writing import ObjectClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.commands.doctor_apiservices import State
    from adapter.commands.doctor_report import Line
    from adapter.identity.certificates.certificate_secret import ObjectName
    from adapter.service.flag_table import FlagValues
    from adapter.sources.prometheus.settings import PrometheusSettings

EXPECTED = ("v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io")
"""Looked at where no APIService is named."""
CALL_SECONDS = 6.0

DOCTOR = Command(
    program=f"{PROGRAM} doctor",
    version=program_version(),
    summary=(
        "Looks at an installation for what usually goes wrong, and says for each thing how to put it right. "
        "Exit status 1 if something is wrong. Run it in the adapter's pod, or with a kubeconfig."
    ),
    flags=(
        Flag(name="output", short="o", kind=one_of("text", "json"), default="text", help="How the report is printed."),
        Flag(
            name="service",
            kind=TEXT,
            help="NAMESPACE/NAME of the adapter's Service (default: the one that the first APIService points to).",
        ),
        Flag(
            name="apiservice",
            kind=TEXT,
            repeat=Repeat.EACH,
            help=f"APIService that the adapter is to answer; may be repeated (default {', '.join(EXPECTED)}).",
        ),
        Flag(
            name="serving-secret",
            kind=TEXT,
            help="NAMESPACE/NAME of the Secret in which it keeps its certificate: to look at the rights to that too.",
        ),
        Flag(
            name="service-account",
            kind=TEXT,
            help="NAMESPACE/NAME of the account whose rights are looked at (default: those of whoever asks).",
        ),
        Flag(
            name="endpoint",
            kind=ADDRESS,
            help="Where the adapter's HTTPS port is reached from here (default: the Service's name in the cluster).",
        ),
        *PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorSettings:
    """What is looked at."""

    apiservices: tuple[str, ...]
    named: bool
    """Whether somebody asked for these, so that each must be there."""
    service: ObjectName | None
    serving_secret: ObjectName | None
    subject: Subject
    endpoint: Address | None
    prometheus: PrometheusSettings | None
    """None: nobody said where it is."""


def doctor(arguments: Sequence[str]) -> NoReturn:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(DOCTOR, arguments, os.environ)
    configure_logs_by(values)
    try:
        settings = doctor_settings(values)
        kubeconfig = values.path("kubeconfig")
        connect = access(str(kubeconfig) if kubeconfig else None, values.text("context") or None)
        deadlines = Deadlines(connect=3.0, silence=CALL_SECONDS, total=2 * CALL_SECONDS)
        client = ObjectClient(KubernetesClient(connect, deadlines), CALL_SECONDS)
    except (UsageError, KubernetesError) as e:
        exit_for_usage(PROGRAM, str(e))
    lines = examined(client, settings)
    print(as_json(lines) if values.text("output") == "json" else as_text(lines))  # noqa: T201 - what was asked for
    sys.exit(1 if count(lines, Status.ERROR) else 0)


def doctor_settings(values: FlagValues) -> DoctorSettings:
    """Return what the flags ask for; raises UsageError."""
    named = values.texts("apiservice")
    account = _object(values, "service-account")
    return DoctorSettings(
        apiservices=tuple(dict.fromkeys(map(apiservice_name, named or EXPECTED))),
        named=bool(named),
        service=_object(values, "service"),
        serving_secret=_object(values, "serving-secret"),
        subject=Subject(account),
        endpoint=values.address("endpoint"),
        prometheus=prometheus_settings(values) if "prometheus-url" in values.given else None,
    )


def _object(values: FlagValues, flag: str) -> ObjectName | None:
    text = values.text(flag)
    return object_name(flag, text) if text else None


def examined(client: ObjectClient, settings: DoctorSettings) -> list[Line]:
    """Look at everything; returns the lines in the order in which one thing rests on another."""
    states: dict[str, State] = {}

    def look(name: str) -> tuple[Line]:
        states[name] = look_at_apiservice(client, name)
        return (_judged(name, states[name], settings),)

    lines = run_checks([Check("kube-apiserver", partial(look_at_apiserver, client))])
    owned = run_checks(
        [
            *(Check(f"apiservice/{name}", partial(look, name)) for name in settings.apiservices),
            *(Check(f"owner/{name}", partial(look, name)) for name in OTHERS if name not in settings.apiservices),
        ]
    )
    return [*lines, *owned, *run_checks([*_checks(client, settings, states)])]


def _judged(name: str, state: State, settings: DoctorSettings) -> Line:
    if name not in settings.apiservices:
        return judge_owner(name, state)
    return judge_apiservice(name, state, settings.service, required=settings.named)


def _checks(client: ObjectClient, settings: DoctorSettings, states: Mapping[str, State]) -> Iterator[Check]:
    """Yield what is looked at once the APIServices are known."""
    found = {name: state for name in settings.apiservices if isinstance(state := states.get(name), Seen)}
    service = settings.service or next((one.registered.service for one in found.values()), None)
    for name, state in found.items():
        if state.registered.service == service and service is not None:
            yield Check(f"certificate/{name}", partial(_look_at_certificate, name, state, settings.endpoint))
        yield Check(f"request/{name}", partial(look_at_request, client, name))
    if service is not None:
        yield Check("replicas", partial(look_at_replicas, client, service))
    yield Check("front-proxy", lambda: look_at_front_proxy(client, datetime.now(tz=UTC)))
    yield Check("prometheus", partial(_look_at_prometheus, settings.prometheus))
    for need in needs_of_adapter(settings.serving_secret, settings.apiservices):
        yield Check(need.name, partial(look_at_right, client, need, settings.subject))
    for need in needs_of_hpa_controller():
        yield Check(need.name, partial(look_at_right, client, need, Subject(HPA_CONTROLLER)))
    yield Check("hpas", partial(look_at_hpas, client))


def _look_at_certificate(name: str, state: Seen, endpoint: Address | None) -> tuple[Line]:
    service = state.registered.service
    host = f"{service.name}.{service.namespace}.svc" if service else ""
    return look_at_certificate(name, state.registered, endpoint or Address(host, state.port))


def _look_at_prometheus(settings: PrometheusSettings | None) -> tuple[Line, ...]:
    if settings is None:
        return (
            unknown("prometheus", "it was not asked", "give --prometheus-url, and what `serve` is given beside it"),
        )
    return look_at_prometheus(settings)
