"""`tidewatch-recommender doctor`: checks an installation of the recommender for common faults.

Gathering and judging are separate: the `look_at_…` functions of the modules beside this one read the state, and their
`judge_…` functions turn it into a line of the report. This module puts them together and prints the lines.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from adapter.foundation.options.backend_checks import look_at_backend, look_at_only_backend
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings, object_name
from adapter.foundation.options.cluster_checks import look_at_apiserver
from adapter.foundation.options.definitions import look_at_definition
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS, prometheus_settings
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.reports.checks import Check, run_checks
from adapter.foundation.reports.lines import SEE_APISERVER, CheckStatus, Line, as_json, as_text, count, error, unknown
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import PATH, TEXT, CommandFlags, Flag, FlagValues
from adapter.foundation.sources.kubernetes.access_rights import Subject
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.discovery import KindDiscovery
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.doctor.config_maps import look_at_memory, look_at_parameters
from recommender.commands.doctor.group_autoscalers import look_at_group_autoscalers
from recommender.commands.doctor.leader import look_at_leader
from recommender.commands.doctor.prometheus import look_at_queries
from recommender.commands.doctor.provisioning_requests import LINE as PROVISIONING_REQUESTS
from recommender.commands.doctor.provisioning_requests import look_at_provisioning_requests
from recommender.commands.doctor.rights import look_at_right, recommendations_kind
from recommender.commands.doctor.scale_targets import judge_owners, judge_tolerances, look_at_target
from recommender.commands.doctor.series import REPLICAS, look_at_metric, look_at_series, metrics_of
from recommender.commands.program import PROGRAM
from recommender.commands.recommend.cluster_inputs import inputs_of_cluster
from recommender.commands.run.run_settings import own_namespace
from recommender.commands.suggested_limits import with_suggested_limits
from recommender.configuration.needs import needs_of_one
from recommender.configuration.rights import rights_of
from recommender.decisions.policy_settings import Output
from recommender.decisions.targets.scaled_objects import with_scaled_objects
from recommender.kinds.proportional.kind import parameters_of
from recommender.running.memory.store_protocol import memory_object_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration, LeaderElection
    from recommender.kinds.kind import Recommendation

CALL_SECONDS = 6.0
_NAME_IT = "set leaderElection.namespace in the configuration, the variable POD_NAMESPACE, or --service-account"

DOCTOR = CommandFlags(
    program=f"{PROGRAM} doctor",
    summary=(
        "Checks an installation for common faults, and says how to fix each. Exits with status 1 if something is "
        "wrong. Run it in the recommender's pod, or with a kubeconfig. It writes nothing."
    ),
    examples=(
        f"{PROGRAM} doctor --config recommender.yaml",
        f"{PROGRAM} doctor --config recommender.yaml --service-account monitoring/recommender",
    ),
    flags=(
        Flag("config", PATH, "The configuration file, as for `run`.", required=True),
        output_flag(),
        Flag(
            "service-account",
            TEXT,
            "NAMESPACE/NAME of the service account to check the rights of (default: the caller's own rights).",
        ),
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderDoctorSettings:
    """The settings of a check that are not in the configuration."""

    subject: Subject
    namespace: str
    """The namespace of the Lease and the memories; empty if it is unknown."""
    prometheus: PrometheusSettings | None
    """The Prometheus that should have the recommender's series; None if none is named."""


def doctor(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(DOCTOR, arguments)
    configure_quiet_logs_by(values)
    _, configuration = configuration_or_exit(values)
    try:
        settings = doctor_settings(values, configuration)
        deadlines = RequestDeadlines(connect=3.0, silence=CALL_SECONDS, total=2 * CALL_SECONDS)
        client = kubernetes_client(cluster_settings(values), deadlines)
    except (UsageError, KubernetesError) as e:
        exit_for_usage(PROGRAM, str(e))
    lines = run_all_checks(client, with_suggested_limits(configuration, values), settings)
    print(as_json(lines) if values.text("output") == "json" else as_text(lines))  # noqa: T201 - the output of the command
    sys.exit(1 if count(lines, CheckStatus.ERROR) else 0)


def doctor_settings(values: FlagValues, configuration: Configuration) -> RecommenderDoctorSettings:
    """Return the settings in the flags. Raises UsageError."""
    account = values.text("service-account")
    subject = Subject(object_name("service-account", account) if account else None)
    return RecommenderDoctorSettings(
        subject=subject,
        namespace=_namespace(configuration.leader_election, subject),
        prometheus=_prometheus(values, configuration.prometheus),
    )


def _prometheus(values: FlagValues, configured: PrometheusSettings | None) -> PrometheusSettings | None:
    """Return the Prometheus of the flags, or of the configuration, whose matchers apply to both."""
    if "prometheus-url" not in values.given:
        return configured
    named = prometheus_settings(values)
    if named.matchers is None and configured is not None:
        return replace(named, matchers=configured.matchers)
    return named


def _namespace(election: LeaderElection, subject: Subject) -> str:
    """Return the namespace in which the recommender runs; if a service account is named, it is that account's."""
    if subject.service_account is not None:
        return election.namespace or subject.service_account.namespace
    try:
        return own_namespace(election)
    except UsageError:
        return ""


def run_all_checks(
    client: KubernetesClient, configuration: Configuration, settings: RecommenderDoctorSettings
) -> list[Line]:
    """Run all checks; return the lines in order."""
    lines = [
        error(
            f"configuration/{refused.name or 'unnamed'}",
            f"{problem.file}:{problem.line}: {problem.message}: the entry is refused",
            problem.fix,
        )
        for refused in configuration.refused
        for problem in refused.problems
    ]
    lines += [
        error("configuration/targets", f"{problem.file}:{problem.line}: {problem.message}", problem.fix)
        for problem in configuration.conflicts
    ]
    return [*lines, *run_checks([*_Installation(client, configuration, settings).checks()])]


class _Installation:
    """The parts of an installation that are checked."""

    def __init__(
        self, client: KubernetesClient, configuration: Configuration, settings: RecommenderDoctorSettings
    ) -> None:
        self._client = client
        self._objects = ObjectClient(client, CALL_SECONDS)
        self._resolve = KindDiscovery(client).resource
        self._configuration = configuration
        self._settings = settings

    def checks(self) -> Iterator[Check]:
        """Yield the checks; those of one recommendation are combined into one, since there may be many of them."""
        yield Check("kube-apiserver", partial(look_at_apiserver, self._objects))
        yield Check("permissions", self._look_at_rights)
        if self._configuration.objects.enabled:
            kind = recommendations_kind()
            yield Check(kind.line, partial(look_at_definition, self._objects, kind))
        yield Check("leader", self._look_at_leader)
        yield Check("owners", self._look_at_owners)
        recommendations = self._configuration.recommendations
        requests = partial(look_at_provisioning_requests, self._objects, self._resolve, recommendations)
        yield Check(PROVISIONING_REQUESTS, requests)
        for each in recommendations:
            yield Check(f"recommendation/{each.policy.name}", partial(self._look_at_recommendation, each))
        series = partial(look_at_series, self._settings.prometheus, recommendations)
        yield Check("series", series)
        backends = self._configuration.backends
        for name, settings in backends.items():
            yield Check(f"prometheus/{name}", partial(look_at_backend, name, settings, "entries"))
        if not backends and self._settings.prometheus is not None:
            yield Check("prometheus", partial(look_at_only_backend, self._settings.prometheus))

    def _look_at_rights(self) -> list[Line]:
        if not self._settings.namespace:
            return [unknown("permissions", "they were not checked: the recommender's namespace is not known", _NAME_IT)]
        rights = rights_of(
            self._configuration,
            namespace=self._settings.namespace,
            resolve=self._resolve,
            memory_name=memory_object_name,
        )
        subject = self._settings.subject
        return [line for right in rights for line in look_at_right(self._objects, right, subject)]

    def _look_at_leader(self) -> tuple[Line]:
        election, namespace = self._configuration.leader_election, self._settings.namespace
        if election.enabled and not namespace:
            return (unknown("leader", "it was not checked: the recommender's namespace is not known", _NAME_IT),)
        return look_at_leader(self._objects, election, namespace, time.time())

    def _look_at_owners(self) -> list[Line]:
        if not self._configuration.recommendations:
            return []
        try:
            inputs = with_scaled_objects(inputs_of_cluster(self._client, self._configuration))
        except KubernetesError as e:
            return [unknown("owners", f"they could not be looked up: {e}", SEE_APISERVER)]
        now = time.time()
        policies = [each.policy for each in self._configuration.recommendations]
        return [
            *(line for policy in policies for line in judge_owners(policy, inputs, now)),
            *(line for policy in policies for line in judge_tolerances(policy, inputs)),
            *(
                line
                for each in self._configuration.recommendations
                for line in look_at_group_autoscalers(self._objects, each, inputs.cluster)
            ),
        ]

    def _look_at_recommendation(self, recommendation: Recommendation) -> list[Line]:
        policy = recommendation.policy
        lines: list[Line] = []
        if (config_map := parameters_of(recommendation)) is not None:
            lines += look_at_parameters(self._objects, policy.name, config_map)
        if self._settings.namespace:
            targets = needs_of_one(recommendation).for_each
            shards = None if targets is None else targets.shards
            lines += look_at_memory(self._objects, policy.name, self._settings.namespace, shards)
        lines += look_at_queries(self._configuration, recommendation)
        has_replicas = REPLICAS in metrics_of(recommendation)
        for target in policy.targets:
            lines += look_at_target(self._objects, self._resolve, policy.name, target, is_scaled=has_replicas)
            if Output.METRIC in policy.outputs and has_replicas:
                lines.append(look_at_metric(self._objects, policy, target))
        return lines
