"""`tidewatch-adapter explain METRIC`: says why a metric has, or lacks, a value."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from adapter.commands.backend_clients import BackendClient
from adapter.commands.explain.server import SERVER_FLAGS, asked_of_server
from adapter.commands.program import PROGRAM
from adapter.commands.rule_files import load_configuration, rule_files_of
from adapter.foundation.documents.load import DocumentError
from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.options.clients import ObjectSettings, objects_for_one_run, prometheus_client_for_one_run
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings
from adapter.foundation.options.logs import LOG_FLAGS, configure_logs_by
from adapter.foundation.options.offline_kinds import kinds_by
from adapter.foundation.options.prometheus import PROMETHEUS_FLAGS, prometheus_matchers
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.reports.terminal_escaping import printable, printable_lines
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import DURATION, PATH, TEXT, CommandFlags, Flag, FlagValues, Repeat, one_of
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.objects import ObjectsError, ObjectSource
from adapter.foundation.sources.prometheus.errors import PrometheusError
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings.backends import Backends, Source
from adapter.metrics.readings.explain.explainer import Explainer
from adapter.metrics.readings.explain.explanation import ExplanationStep, ExplanationVerdict, Outcome
from adapter.metrics.readings.explain.fresh_queries import SeenObjects
from adapter.metrics.readings.explain.questions import APIS, QuestionError, Texts, question_of
from adapter.metrics.readings.prometheus_uptime import ASK_SECONDS, PrometheusUptime, always_there
from adapter.metrics.readings.reading_sources import ReadingSources
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
    from adapter.metrics.readings.explain.explanation import Explanation, Question
    from adapter.metrics.rulebook.model import Rule, Rulebook

_LONG_CHARACTERS = 40
"""From this length on, what the first line says is not repeated below it."""

_REQUESTERS_UNKNOWN = ExplanationStep(
    "asked", Outcome.INFO, "only a running server knows who asked last: name it with --server"
)

EXPLAIN = CommandFlags(
    program=f"{PROGRAM} explain",
    summary=(
        "Explains why a metric has, or lacks, a value: which rule makes it, the query, Prometheus's answer, and "
        "which objects have no sample. METRIC is NAME or KIND/NAME, as in pods/http_requests. Exits with status 1 if "
        "there is no value."
    ),
    arguments=("METRIC",),
    examples=(
        (
            f"{PROGRAM} explain pods/websocket_connections -n chat --config rules/adapter "
            "--prometheus-url http://prometheus:9090"
        ),
        (
            f"{PROGRAM} explain queue_length -n shop --selector queue=orders "
            "--server https://adapter.monitoring.svc -o json"
        ),
    ),
    flags=(
        Flag(
            "config",
            PATH,
            "Rule file, or a folder of *.yaml; may be repeated. Required without --server.",
            repeat=Repeat.EACH,
        ),
        Flag("namespace", TEXT, "Namespace of the objects.", short="n"),
        Flag("object", TEXT, "KIND/NAME of one object, as in pods/web-0 (default: all objects of the namespace)."),
        Flag("selector", TEXT, "Selector of the metric, as in queue=orders.", short="l"),
        Flag("api", one_of(*APIS), "API of the metric, if several have a metric of this name."),
        Flag("objects", PATH, "Folder of objects (*.json, *.yaml) to use instead of a cluster."),
        output_flag(),
        Flag(
            "metrics-max-age",
            DURATION,
            "How old the newest sample of a series may be for the series to count.",
            default=60.0,
        ),
        *SERVER_FLAGS,
        *PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)


def explain(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(EXPLAIN, arguments)
    configure_logs_by(values)
    try:
        found = asked_of_server(values) if values.text("server") else _explain(values)
    except (UsageError, FilesError, DocumentError, KubernetesError, ObjectsError) as error:
        exit_for_usage(PROGRAM, printable(str(error)))
    text = found.as_json().decode() if values.text("output") == "json" else as_text(found)
    print(text)  # noqa: T201 - the output of the command
    sys.exit(0 if found.verdict is ExplanationVerdict.VALUE else 1)


def as_text(found: Explanation) -> str:
    """Return the explanation for people: the answer first, then the steps that led to it."""
    where = f" in {found.namespace}" if found.namespace else ""
    whom = f" of {found.object}" if found.object else ""
    verdict = {
        ExplanationVerdict.VALUE: "has a value",
        ExplanationVerdict.NO_VALUE: "has no value",
        ExplanationVerdict.ERROR: "gives an error",
    }
    lines = [f"{found.metric}{whom}{where} {verdict[found.verdict]}: {found.cause}"]
    lines += [f"  what to do: {found.fix}"] if found.fix else []
    lines += ["", *(f"  {step.outcome.value:<5} {step.step:<8} {_detail(step, found.cause)}" for step in found.steps)]
    lines = [printable(line) for line in lines]
    lines += [f"  query: {printable_lines(found.query)}"] if found.query else []
    for value in found.values:
        age = "" if value.age_seconds is None else f"  (newest sample {value.age_seconds:.0f} s old)"
        lines.append(f"  value: {printable(value.object)}  {value.value:.15g}{age}")
    return "\n".join(lines)


def _detail(step: ExplanationStep, cause: str) -> str:
    """Return the detail of a step, unless it is a long text that the first line has."""
    return "see the first line" if len(step.detail) >= _LONG_CHARACTERS and step.detail in cause else step.detail


def _explain(values: FlagValues) -> Explanation:
    if not values.paths("config"):
        raise UsageError(
            "--config is missing: name a rule file or a folder, or set --server to the server that serves the metric"
        )
    with _objects(values) as (objects, resolve), prometheus_client_for_one_run(values) as prometheus:
        rulebook = parse_rulebook(load_configuration(rule_files_of(values.paths("config"))), resolve)
        question = _question(values, resolve)
        settings = ReadingSettings(
            matchers=prometheus_matchers(values), metrics_max_age_seconds=values.seconds("metrics-max-age")
        )
        backends = _backends(values, prometheus, rulebook)
        sources = ReadingSources(backends, objects or SeenObjects(resolve), settings, Clock(), UNPACED)
        return Explainer(sources).explain(question, rulebook, (_REQUESTERS_UNKNOWN,))


def _backends(values: FlagValues, prometheus: PrometheusClient, rulebook: Rulebook) -> Backends:
    """Return the clients for the Prometheus of the flags and for the backends that rules name."""
    matchers = prometheus_matchers(values)
    own = tuple(rule for rule in rulebook.rules if rule.backend is None)
    default = Source(prometheus, _uptime(prometheus, own), lambda work: work())
    backends = Backends(default, lambda backend: BackendClient(backend.name, backend.with_matchers(matchers)))
    backends.open(rulebook)
    return backends


def _uptime(prometheus: PrometheusClient, rules: Sequence[Rule]) -> PrometheusUptime:
    """Return when Prometheus began to collect samples: long ago, if it does not report this or no rule needs it."""
    if all(rule.policy.no_data_value is None for rule in rules):
        return always_there(Clock())
    try:
        started = prometheus.fetch_start(ASK_SECONDS)
    except PrometheusError:
        return always_there(Clock())
    uptime = PrometheusUptime(Clock(), lambda _seconds: started)
    uptime.wanted = True
    return uptime


def _question(values: FlagValues, resolve: ResolveResource) -> Question:
    texts = Texts(
        metric=values.arguments[0],
        namespace=values.text("namespace"),
        object=values.text("object"),
        selector=values.text("selector"),
        api=values.text("api"),
    )
    try:
        return question_of(texts, resolve)
    except QuestionError as error:
        what = "METRIC" if error.name == "metric" else f"--{error.name}"
        repair = ": write it as for kubectl, such as queue=orders" if error.name == "selector" else ""
        raise UsageError(f"{what}: {error.message}{repair}") from error


@contextmanager
def _objects(values: FlagValues) -> Iterator[tuple[ObjectSource | None, ResolveResource]]:
    """Yield the objects of a folder or cluster, and the function that finds kinds; None if no flag names objects."""
    settings = ObjectSettings(files=values.path("objects"), cluster=cluster_settings(values))
    if settings.files is None and not settings.cluster.is_named:
        yield None, kinds_by(values)
        return
    with objects_for_one_run(settings) as objects:
        yield objects, objects.resource
