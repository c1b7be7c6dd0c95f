"""`tidewatch-recommender sizes`: the requests that every container should have, computed only from Prometheus."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.foundation.cluster.watch.whole_objects.watching import AnyObjectForm, whole_object
from adapter.foundation.objects.names import is_namespace_name
from adapter.foundation.objects.resources import Resource
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.options.logs import configure_quiet_logs_by
from adapter.foundation.options.prometheus import prometheus_settings
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.runtime.garbage_collector import rare_collections
from adapter.foundation.sources.kubernetes.errors import (
    ConfigurationError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
)
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch
from adapter.foundation.sources.kubernetes.lists.whole_list import whole_list
from adapter.foundation.sources.prometheus.errors import (
    AuthenticationRefusedError,
    IncompleteAnswerError,
    PrometheusError,
    PrometheusUnreachableError,
    SettingsError,
    shorten_message,
)
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.commands.output_files import check_picture
from recommender.commands.program import PROGRAM
from recommender.commands.sizes.flags import SIZES, history_seconds, size_settings
from recommender.commands.sizes.size_backtest import SHORTEST_SECONDS, SizeBacktest, backtest_sizes
from recommender.commands.sizes.size_backtest_text import as_backtest_json, as_backtest_table
from recommender.commands.sizes.size_document import as_csv, as_json, as_yaml
from recommender.commands.sizes.size_patches import as_patches
from recommender.commands.sizes.size_reading import Sizes, read_sizes
from recommender.commands.sizes.size_table import as_table
from recommender.decisions.targets.vertical_autoscalers import GROUP, KIND, PLURAL, active_autoscalers, note_about
from recommender.decisions.texts.times import parse_rfc3339
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.size_record import SizeRecord, SizeStatus
from recommender.kinds.resources.sizing import SizingOptions
from recommender.running.usage.cluster_history import ClusterReader, SeveralClustersError
from recommender.running.usage.prometheus_vectors import QUERY_SECONDS
from recommender.running.usage.usage_queries import USUAL_RESOLUTION, Resolution, namespace_matcher
from recommender.running.usage.usage_window import SizeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.foundation.options.cluster import ClusterSettings
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.decisions.inputs import ActiveAutoscalers
    from recommender.kinds.resources.workloads import SizedWorkload

_GRID_SECONDS: Final = 300
"""Queries end at a multiple of this time, so that caches in front of Prometheus can reuse their answers."""
_PRINTED: Final[dict[str, Callable[[Sizes], str]]] = {
    "json": as_json,
    "yaml": as_yaml,
    "csv": as_csv,
    "patch": as_patches,
}


def sizes(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(SIZES, arguments)
    configure_quiet_logs_by(values)
    try:
        with rare_collections():
            found = _result(values)
    except PrometheusError as error:
        exit_for_usage(PROGRAM, _prometheus_problem(error))
    except (UsageError, SettingsError, SeveralClustersError) as error:
        exit_for_usage(PROGRAM, str(error))
    print(_text(values, found))  # noqa: T201 - the output of the command
    sys.exit(0 if _has_value(found) else 1)


def _has_value(found: Sizes | SizeBacktest) -> bool:
    """Return whether any container has a size, or could be judged."""
    if isinstance(found, SizeBacktest):
        return any(each.days for each in found.containers)
    return any(record.status is not SizeStatus.ERROR for record in found.records)


def _prometheus_problem(error: PrometheusError) -> str:
    """Return the cause and the repair, with the query only if it matters, as it is long and no user wrote it."""
    match error:
        case PrometheusError(repair=repair) if repair:
            pass
        case PrometheusUnreachableError():
            repair = "check the address, whether Prometheus runs there, and --prometheus-ca-file"
        case AuthenticationRefusedError():
            repair = "set --prometheus-token-file, or --prometheus-username and --prometheus-password-file"
        case IncompleteAnswerError():
            repair = "check the stores behind the address"
        case _:
            repair = f"check that it is Prometheus's address; the query was {shorten_message(error.query)}"
    return f"--prometheus-url: {error.cause}: {repair}"


def _result(values: FlagValues) -> Sizes | SizeBacktest:
    _check(values)
    namespace, name = _selection(values)
    cluster = cluster_settings(values)
    seen = _seen_autoscalers(cluster, namespace) if cluster.is_named else _SeenAutoscalers({})
    # Queries name their own time limit; a server sends nothing while it calculates.
    settings = replace(prometheus_settings(values), read_timeout_seconds=QUERY_SECONDS)
    with PrometheusClient(settings) as client:
        where = namespace_matcher((namespace,)) if namespace else ""
        end, seconds = _end(values), history_seconds(values)
        reader = ClusterReader(client, SizeWindow(end // _GRID_SECONDS * _GRID_SECONDS, seconds), where)
        reader.refuse_several_clusters()
        resolution = reader.resolution() or USUAL_RESOLUTION
        window = SizeWindow(end // resolution.step_seconds * resolution.step_seconds, seconds)
        reader = ClusterReader(client, window, where)
        if values.boolean("backtest"):
            return backtest_sizes(reader, reader.history(), size_settings(values), resolution, _filter_for(name))
        return _with_autoscalers(_sizes(values, reader, resolution, _filter_for(name)), seen)


def _check(values: FlagValues) -> None:
    """Raise UsageError for flags that cannot be combined."""
    if "prometheus-url" not in values.given:
        raise UsageError("--prometheus-url is missing: write the address of Prometheus, such as http://prometheus:9090")
    check_picture(values)
    if values.path("plot") is not None and not values.text("workload"):
        raise UsageError("--plot needs --workload NAMESPACE/NAME: a picture shows one workload")
    if not values.boolean("backtest"):
        return
    if values.text("output") not in {"table", "text", "json"}:
        raise UsageError(f"--backtest has no output {values.text('output')}: write -o table or -o json")
    for other in ("plot", "also-with-hpa", "kubeconfig", "context"):
        if other in values.given:
            raise UsageError(f"--{other} has no effect with --backtest: remove one of them")
    if history_seconds(values) < SHORTEST_SECONDS:
        days = round(SHORTEST_SECONDS / DAY_SECONDS)
        raise UsageError(f"--last is too short for --backtest: write {days}d or more, such as 15d")


def _sizes(
    values: FlagValues, reader: ClusterReader, resolution: Resolution, wanted: Callable[[SizedWorkload], bool]
) -> Sizes:
    options = SizingOptions(
        size_settings(values),
        also_with_hpa=values.boolean("also-with-hpa"),
        step_seconds=resolution.step_seconds,
        rate_seconds=resolution.rate_seconds,
    )
    found = read_sizes(reader, reader.history(), options, resolution, wanted)
    plot = values.path("plot")
    if plot is not None and found.records:
        from recommender.commands.sizes.size_plot import write_size_plot  # noqa: PLC0415 - takes a second to load

        try:
            write_size_plot(reader, found, resolution, plot)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--plot: {plot} cannot be written ({error}): name a file in a folder that you may use"
            ) from error
    return found


def _selection(values: FlagValues) -> tuple[str, str]:
    """Return the namespace and the name of the selected workloads; empty for all."""
    namespace, workload = values.text("namespace"), values.text("workload")
    of_workload, slash, name = workload.partition("/")
    if "workload" in values.given and not (slash and name and is_namespace_name(of_workload)):
        raise UsageError(f"--workload: {workload!r} is not NAMESPACE/NAME: write one such as shop/web")
    if namespace and not is_namespace_name(namespace):
        raise UsageError(f"--namespace: {namespace!r} is not the name of a namespace: write one such as shop")
    if namespace and of_workload and namespace != of_workload:
        raise UsageError(f"--workload is in {of_workload}, and --namespace is {namespace}: leave --namespace out")
    return namespace or of_workload, name


def _filter_for(name: str) -> Callable[[SizedWorkload], bool]:
    return lambda workload: not name or workload.name == name


def _end(values: FlagValues) -> float:
    if not values.text("end"):
        return time.time()
    try:
        return parse_rfc3339(values.text("end"))
    except ValueError as error:
        raise UsageError(f"--end: {error}") from error


def _text(values: FlagValues, found: Sizes | SizeBacktest) -> str:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if isinstance(found, SizeBacktest):
        return as_backtest_json(found) if values.text("output") == "json" else as_backtest_table(found, width)
    printed = _PRINTED.get(values.text("output"))
    return as_table(found, width) if printed is None else printed(found)


_RESOURCE: Final = Resource(GROUP, "v1", PLURAL, KIND.lower(), KIND, namespaced=True)


@dataclass(frozen=True, slots=True)
class _SeenAutoscalers:
    """The VerticalPodAutoscalers of a cluster."""

    known: ActiveAutoscalers
    problem: str = ""
    """Why nothing is known about the VerticalPodAutoscalers; empty if they are known."""


def _seen_autoscalers(cluster: ClusterSettings, namespace: str) -> _SeenAutoscalers:
    """Return the VerticalPodAutoscalers of a namespace, or of all namespaces if it is empty.

    A cluster without the kind has none. Raises UsageError if the cluster cannot be read.
    """
    try:
        return _SeenAutoscalers(_list_autoscalers(cluster, namespace))
    except NotFoundError:
        return _SeenAutoscalers({})
    except ForbiddenError as error:
        lost = "VerticalPodAutoscalers may not be listed, so it is not known which of them also size a workload"
        return _SeenAutoscalers({}, f"{lost}: {error}")
    except ConfigurationError as error:
        # The error names the file and the repair.
        raise UsageError(str(error)) from error
    except KubernetesError as error:
        fix = "check the address and the credentials, or leave --kubeconfig and --context out"
        raise UsageError(f"--kubeconfig: VerticalPodAutoscalers cannot be listed: {error}: {fix}") from error


def _with_autoscalers(sizes: Sizes, seen: _SeenAutoscalers) -> Sizes:
    """Return the sizes with a note for workloads that a VerticalPodAutoscaler also sizes."""
    missing = (*sizes.missing, seen.problem) if seen.problem else sizes.missing
    return replace(sizes, records=tuple(_with_note(record, seen.known) for record in sizes.records), missing=missing)


def _list_autoscalers(cluster: ClusterSettings, namespace: str) -> ActiveAutoscalers:
    """Return the VerticalPodAutoscalers that write requests. Raises KubernetesError."""
    which = ListWatch(_RESOURCE, WHOLE_OBJECTS, namespace or None)
    forms = whole_list(kubernetes_client(cluster), which, AnyObjectForm)
    return active_autoscalers(whole_object(_RESOURCE, form) for form in forms)


def _with_note(record: SizeRecord, known: ActiveAutoscalers) -> SizeRecord:
    workload = record.workload
    # kube-state-metrics does not state the API group of a workload.
    those = known.get((workload.namespace, workload.kind, workload.name), ())
    if record.status is SizeStatus.ERROR or not those:
        return record
    return replace(record, message="; ".join(filter(None, (record.message, note_about(those[0])))))
