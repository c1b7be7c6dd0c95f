"""`tidewatch-adapter check`: reports what is wrong or doubtful in rule files, and what they would serve."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from adapter.commands.backend_clients import BackendClient
from adapter.commands.check.output import MOST_QUERIES, as_json, as_text
from adapter.commands.program import PROGRAM
from adapter.commands.rule_files import load_configuration, load_each, rule_files_of
from adapter.commands.trials.served import served_by
from adapter.commands.trials.usage import usage_served_by
from adapter.foundation.documents.load import Document, DocumentError
from adapter.foundation.files.file_contents import FileContent, FilesError
from adapter.foundation.files.replaced_file import replace_file
from adapter.foundation.options.clients import kubernetes_client, prometheus_client_for_one_run
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings
from adapter.foundation.options.logs import LOG_FLAGS, configure_logs_by
from adapter.foundation.options.offline_kinds import kinds_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS, prometheus_matchers
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import DURATION, PATH, TEXT, CommandFlags, Flag, Repeat, switch
from adapter.foundation.sources.kubernetes.errors import (
    ConfigurationError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
)
from adapter.foundation.sources.prometheus.queries.budget import Budgeted, Prometheus
from adapter.metrics.rulebook.findings import Severity
from adapter.metrics.rulebook.lint.repairs import repair_file
from adapter.metrics.rulebook.parsing.parse import parse_rulebook
from adapter.metrics.rulebook.report import RulebookReport, ServedMetrics, rulebook_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.sources.prometheus.backends.backend import Backend
    from adapter.metrics.rulebook.model import Rulebook

ALL_QUERIES_SECONDS = 60.0
"""Time limit for all queries together; the report says which rules were skipped because of it."""

CHECK = CommandFlags(
    program=f"{PROGRAM} check",
    summary=(
        "Reports errors and doubtful settings in rule files and, with --prometheus-url, what each rule would serve. "
        "Exits with status 1 if there is an error, and with 2 if no file can be read at all."
    ),
    examples=(
        f"{PROGRAM} check --config rules/adapter",
        f"{PROGRAM} check --config rules.yaml --prometheus-url http://prometheus:9090 -o json",
    ),
    flags=(
        Flag(
            "config",
            PATH,
            "Rule file, a ConfigMap's manifest, values of a chart, or a folder of *.yaml; may be repeated.",
            repeat=Repeat.EACH,
        ),
        Flag("configmap", TEXT, "NAMESPACE/NAME of a ConfigMap that holds rule files, instead of --config."),
        output_flag(),
        switch("fix", "Fix mechanical errors in the files themselves."),
        Flag(
            "metrics-max-age",
            DURATION,
            "With --prometheus-url: how old the newest sample of a series may be for the series to count.",
            default=60.0,
        ),
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)


@dataclass(frozen=True, slots=True)
class _Checked:
    """Rule files, read and parsed."""

    contents: tuple[FileContent, ...]
    documents: tuple[Document, ...]
    rulebook: Rulebook


def check(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(CHECK, arguments)
    configure_logs_by(values)
    try:
        resolve = kinds_by(values)
        checked = _read(values, resolve)
        mended = _mend(checked) if values.boolean("fix") else 0
        if mended:
            checked = _read(values, resolve)
        report = rulebook_report(
            checked.documents, checked.rulebook, resolve, _served_metrics(values, checked, resolve)
        )
    except (UsageError, FilesError, DocumentError, ConfigurationError) as error:
        exit_for_usage(PROGRAM, str(error))
    except KubernetesError as error:
        exit_for_usage(PROGRAM, f"{error}: check the cluster that --kubeconfig and --context name")
    _print(values, report, checked, mended)
    sys.exit(1 if report.count(Severity.ERROR) else 0)


def _print(values: FlagValues, report: RulebookReport, checked: _Checked, mended: int) -> None:
    if values.text("output") == "json":
        print(as_json(report))  # noqa: T201 - the output of the command
        return
    if values.boolean("fix"):
        print(f"fixed {mended} finding{'' if mended == 1 else 's'}")  # noqa: T201 - likewise
    print(as_text(report, {str(content.path): content.text for content in checked.contents}))  # noqa: T201 - likewise


def _read(values: FlagValues, resolve: ResolveResource) -> _Checked:
    """Return the rule files. Those in a ConfigMap of the cluster are read as `serve` reads them where it is mounted."""
    contents = _contents(values)
    files = load_each(contents, manifests=not values.text("configmap"))
    rulebook = parse_rulebook(files.documents, resolve)
    return _Checked(contents, files.documents, replace(rulebook, findings=(*files.broken, *rulebook.findings)))


def _contents(values: FlagValues) -> tuple[FileContent, ...]:
    paths, configmap = values.paths("config"), values.text("configmap")
    if bool(paths) == bool(configmap):
        raise UsageError("give either --config (a rule file or a folder) or --configmap NAMESPACE/NAME")
    if paths:
        return rule_files_of(paths)
    if values.boolean("fix"):
        raise UsageError("--fix changes files and cannot change a ConfigMap: save it to a file first")
    return _configmap_contents(values, configmap)


def _configmap_contents(values: FlagValues, name: str) -> tuple[FileContent, ...]:
    namespace, slash, name = name.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UsageError("--configmap: write NAMESPACE/NAME")
    client = kubernetes_client(cluster_settings(values))
    try:
        found = msgspec.json.decode(client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}"))
    except NotFoundError as error:
        raise UsageError(f"--configmap: {error}: name the ConfigMap with the rules") from error
    except ForbiddenError as error:
        raise UsageError(f"--configmap: {error}: grant `get` of it, or save it to a file for --config") from error
    data = {key: text for key, text in (found.get("data") or {}).items() if key.endswith((".yaml", ".yml"))}
    if not data:
        raise UsageError(f"the ConfigMap {namespace}/{name} holds no *.yaml key: name the ConfigMap with the rules")
    return tuple(FileContent(Path(f"{namespace}/{name}:{key}"), data[key]) for key in sorted(data))


def _mend(checked: _Checked) -> int:
    """Fix the files, replacing each atomically; return how many findings were fixed."""
    mended = 0
    for content in checked.contents:
        own = [finding for finding in checked.rulebook.findings if finding.file == str(content.path)]
        text, done = repair_file(content.text, own, partial(_documents_of, content.path))
        if done:
            try:
                replace_file(content.path.resolve(), text.encode(), mode=None)
            except OSError as error:
                fix = "check that its folder is writable"
                raise FilesError(f"{content.path}: cannot be fixed: {error.strerror}: {fix}") from error
            mended += len(done)
    return mended


def _documents_of(path: Path, text: str) -> Iterable[Document]:
    return load_configuration([FileContent(path, text)])


def _served_metrics(values: FlagValues, checked: _Checked, resolve: ResolveResource) -> dict[str, ServedMetrics] | None:
    if "prometheus-url" not in values.given:
        return None
    with prometheus_client_for_one_run(values) as prometheus:
        client_of = _clients(values, prometheus)
        of_rules = served_by(
            checked.rulebook.rules,
            client_of,
            resolve,
            max_age_seconds=values.seconds("metrics-max-age"),
            most_queries=None if values.text("output") == "json" else MOST_QUERIES,
        )
        return of_rules | usage_served_by(checked.rulebook.resource.rules, client_of)


def _clients(values: FlagValues, of_flags: Prometheus) -> Callable[[Backend | None], Budgeted]:
    """Return a function from a backend, or None for the flags' Prometheus, to its client with its own time limit."""
    matchers = prometheus_matchers(values)

    @cache
    def client_of(backend: Backend | None) -> Budgeted:
        client = BackendClient(backend.name, backend.with_matchers(matchers)) if backend is not None else of_flags
        return Budgeted(client, ALL_QUERIES_SECONDS)

    return client_of
