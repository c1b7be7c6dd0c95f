"""`tidewatch-adapter doctor`: checks an installation for common faults, from inside the cluster.

Gathering and judging are separate: the `look_at_…` functions of the modules beside this one read the state, and their
`judge_…` functions turn it into a line of the report. This module calls them and prints the lines.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from adapter.commands.doctor.apiservice_removal import remove_if_left_behind
from adapter.commands.doctor.apiservices import EXTERNAL_API, PREFERRED_CUSTOM_API, Seen, look_at_request
from adapter.commands.doctor.autoscalers import look_at_hpas, look_at_replicas, served_sources
from adapter.commands.doctor.nodes import NODES_FLAGS, look_at_nodes, nodes_server
from adapter.commands.doctor.prometheus import look_at_prometheus
from adapter.commands.doctor.registered_apiservices import DoctorSettings, RegisteredApis
from adapter.commands.doctor.resource_api import RESOURCE_API, rule_documents, rulebook_of
from adapter.commands.doctor.rights import (
    HPA_CONTROLLER,
    METRIC_RULES,
    look_at_front_proxy,
    look_at_right,
    needs_of_adapter,
    needs_of_hpa_controller,
    needs_of_rule_objects,
)
from adapter.commands.doctor.tls import look_at_certificate
from adapter.commands.program import PROGRAM
from adapter.commands.serve.certificates import apiservice_name
from adapter.foundation.options.backend_checks import look_at_backend
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings, object_name
from adapter.foundation.options.cluster_checks import look_at_apiserver
from adapter.foundation.options.definitions import look_at_definition
from adapter.foundation.options.logs import LOG_FLAGS, configure_logs_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS, prometheus_matchers, prometheus_settings
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.reports.checks import Check, run_checks
from adapter.foundation.reports.lines import CheckStatus, Line, as_json, as_text, count, unknown
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import ADDRESS, PATH, TEXT, CommandFlags, Flag, Repeat, switch
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.sources.kubernetes.access_rights import Subject
from adapter.foundation.sources.kubernetes.client import RequestDeadlines
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from adapter.metrics.rulebook.model import Api
from adapter.metrics.rulebook.parsing.declared_backends import declared_backends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

EXPECTED = ("v1beta1.custom.metrics.k8s.io", EXTERNAL_API)
"""APIServices that are checked if no flag names any."""
_REGISTERED_BY_THE_CHART = (*EXPECTED, PREFERRED_CUSTOM_API, RESOURCE_API)
CALL_SECONDS = 6.0

METRIC_RULES_FLAG = switch(
    "metric-rules",
    "Also check what `serve --metric-rules` needs: the CustomResourceDefinition of MetricRules and the rights on them.",
)

DOCTOR = CommandFlags(
    program=f"{PROGRAM} doctor",
    summary=(
        "Checks an installation for common faults, and says how to fix each. "
        "Exits with status 1 if something is wrong. Run it in the adapter's pod, or with a kubeconfig."
    ),
    examples=(
        f"{PROGRAM} doctor --kubeconfig ~/.kube/config",
        f"{PROGRAM} doctor --remove --kubeconfig ~/.kube/config",
    ),
    flags=(
        output_flag(),
        switch(
            "remove",
            "Check nothing, and remove the APIServices that a release of the chart has left behind and that have no "
            "ready pod. They block the deletion of every namespace.",
        ),
        Flag(
            "service",
            TEXT,
            "NAMESPACE/NAME of the adapter's Service (default: the one that the first APIService points to).",
        ),
        Flag(
            "apiservice",
            TEXT,
            f"APIService that the adapter should serve; may be repeated (default {', '.join(EXPECTED)}).",
            repeat=Repeat.EACH,
        ),
        Flag(
            "config",
            PATH,
            "Rule file, or a folder of *.yaml, as for `serve`; may be repeated. It shows whether the adapter "
            f"should also serve {RESOURCE_API}, and which other Prometheus servers its rules ask.",
            repeat=Repeat.EACH,
        ),
        METRIC_RULES_FLAG,
        Flag(
            "serving-secret",
            TEXT,
            "NAMESPACE/NAME of the Secret that holds the adapter's certificate, to check the rights on it as well.",
        ),
        Flag(
            "service-account",
            TEXT,
            "NAMESPACE/NAME of the service account to check the rights of (default: the caller's own rights).",
        ),
        Flag(
            "endpoint",
            ADDRESS,
            "Address of the adapter's HTTPS port as seen from here (default: the Service's name in the cluster).",
        ),
        *NODES_FLAGS,
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)


def doctor(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(DOCTOR, arguments)
    configure_logs_by(values)
    try:
        settings = doctor_settings(values)
        deadlines = RequestDeadlines(connect=3.0, silence=CALL_SECONDS, total=2 * CALL_SECONDS)
        client = ObjectClient(kubernetes_client(cluster_settings(values), deadlines), CALL_SECONDS)
    except (UsageError, KubernetesError) as e:
        exit_for_usage(PROGRAM, str(e))
    lines = remove_apiservices(client, settings) if values.boolean("remove") else run_all_checks(client, settings)
    print(as_json(lines) if values.text("output") == "json" else as_text(lines))  # noqa: T201 - the output of the command
    sys.exit(1 if count(lines, CheckStatus.ERROR) else 0)


def doctor_settings(values: FlagValues) -> DoctorSettings:
    """Return the settings that the flags describe; raises UsageError."""
    named, documents = values.texts("apiservice"), rule_documents(values.paths("config"))
    matchers, backends = prometheus_matchers(values), declared_backends(documents).by_name
    account, rulebook = _object(values, "service-account"), rulebook_of(documents)
    return DoctorSettings(
        apiservices=tuple(dict.fromkeys(map(apiservice_name, named or EXPECTED))),
        named=bool(named),
        service=_object(values, "service"),
        serving_secret=_object(values, "serving-secret"),
        subject=Subject(account),
        endpoint=values.address("endpoint"),
        prometheus=prometheus_settings(values) if "prometheus-url" in values.given else None,
        nodes=nodes_server(values),
        serves_rule_objects=values.boolean("metric-rules"),
        serves_resources=None if rulebook is None else bool(rulebook.resource.rules),
        serves_external=None if rulebook is None else any(rule.api is Api.EXTERNAL for rule in rulebook.rules),
        backends={name: each.with_matchers(matchers) for name, each in backends.items()},
    )


def _object(values: FlagValues, flag: str) -> ObjectName | None:
    text = values.text(flag)
    return object_name(flag, text) if text else None


def remove_apiservices(client: ObjectClient, settings: DoctorSettings) -> list[Line]:
    """Remove abandoned APIServices: among those that flags name, or else among all that the chart can create."""
    names = settings.apiservices if settings.named else _REGISTERED_BY_THE_CHART
    return run_checks([Check(f"apiservice/{name}", partial(remove_if_left_behind, client, name)) for name in names])


def run_all_checks(client: ObjectClient, settings: DoctorSettings) -> list[Line]:
    """Run all checks; return the lines in order, each after those that it depends on."""
    registered = RegisteredApis(client, settings)
    lines = run_checks([Check("kube-apiserver", partial(look_at_apiserver, client))])
    lines += run_checks([Check(f"apiservice/{name}", partial(registered.look, name)) for name in registered.names])
    lines += registered.judge_services()
    # The other APIServices show which Service is the adapter's, and so whether this one is its own.
    lines += run_checks([Check(f"owner/{RESOURCE_API}", registered.look_at_resource_api)])
    return [*lines, *run_checks([*_checks(client, settings, registered)])]


def _checks(client: ObjectClient, settings: DoctorSettings, registered: RegisteredApis) -> Iterator[Check]:
    """Yield the checks that need the APIServices to be known."""
    service, found = registered.service, registered.to_answer
    for name, state in found.items():
        if state.registered.service == service and service is not None:
            yield Check(f"certificate/{name}", partial(_look_at_certificate, name, state, settings.endpoint))
        yield Check(f"request/{name}", partial(look_at_request, client, name))
    if service is not None:
        yield Check("replicas", partial(look_at_replicas, client, service))
    yield Check("front-proxy", lambda: look_at_front_proxy(client, datetime.now(tz=UTC)))
    yield Check("prometheus", partial(_look_at_prometheus, settings.prometheus))
    for name, backend in settings.backends.items():
        yield Check(f"prometheus/{name}", partial(look_at_backend, name, backend, "rules"))
    if settings.nodes is not None:
        yield Check("nodes", partial(look_at_nodes, client, settings.nodes))
    for need in needs_of_adapter(settings.serving_secret, list(dict.fromkeys((*settings.apiservices, *found)))):
        yield Check(need.name, partial(look_at_right, client, need, settings.subject))
    if settings.serves_rule_objects:
        yield Check(METRIC_RULES.line, partial(look_at_definition, client, METRIC_RULES))
        for need in needs_of_rule_objects():
            yield Check(need.name, partial(look_at_right, client, need, settings.subject))
    for need in needs_of_hpa_controller():
        yield Check(need.name, partial(look_at_right, client, need, Subject(HPA_CONTROLLER)))
    served = served_sources(external=not registered.leaves_external_to_keda, resources=RESOURCE_API in found)
    yield Check("hpas", partial(look_at_hpas, client, served))


def _look_at_certificate(name: str, state: Seen, endpoint: Address | None) -> tuple[Line]:
    service = state.registered.service
    host = f"{service.name}.{service.namespace}.svc" if service else ""
    return look_at_certificate(name, state.registered, endpoint or Address(host, state.port))


def _look_at_prometheus(settings: PrometheusSettings | None) -> tuple[Line, ...]:
    if settings is None:
        return (
            unknown(
                "prometheus", "it was not checked", "set --prometheus-url and the other --prometheus flags of `serve`"
            ),
        )
    return look_at_prometheus(settings)
