"""`tidewatch-recommender recommend`: decides once, gives the reasons, and writes nothing."""

from __future__ import annotations

import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.foundation.cluster.files.reading import ClusterFilesError
from adapter.foundation.documents.tree import did_you_mean
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings
from adapter.foundation.options.cluster_checks import unreachable_message
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS
from adapter.foundation.options.report_format import output_flag
from adapter.foundation.reports.documents import json_text
from adapter.foundation.reports.terminal_escaping import is_coloured, printable
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import PATH, TEXT, CommandFlags, Flag, FlagValues, Repeat, switch
from adapter.foundation.service.runtime.garbage_collector import no_collections, rare_collections
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnreachableError
from adapter.foundation.sources.prometheus.errors import PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.program import PROGRAM
from recommender.commands.recommend.cluster_inputs import inputs_of_cluster
from recommender.commands.recommend.deciding import records_of, targets_scaled_by_series, with_query_values
from recommender.commands.recommend.file_inputs import inputs_of_files
from recommender.commands.recommend.history_inputs import load_inputs, usage_inputs
from recommender.commands.recommend.shape_flags import SHAPE_FLAGS, check_shape_flags
from recommender.commands.recommend.what_if import WHAT_IF_FLAGS, what_if_of, with_assumptions
from recommender.commands.suggested_limits import with_suggested_limits
from recommender.configuration.needs import backends_asked_by
from recommender.decisions.inputs import Inputs
from recommender.printed.document import recommendation_list
from recommender.printed.table import as_text
from recommender.recording.recording import RecordingError
from recommender.running.queries.backend_queries import BackendConnection, connections_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import Record, TargetReference

    ReadInputsFor: TypeAlias = Callable[[Configuration, frozenset[TargetReference]], Inputs]
    """Reads the inputs of a configuration, and looks up these targets besides those that it lists."""

_UNREADABLE: Final = (UsageError, ClusterFilesError, KubernetesError, PrometheusError, RecordingError, SettingsError)
_WIDTH: Final = 80
"""Width of lines if they are not printed to a terminal."""

RECOMMEND = CommandFlags(
    program=f"{PROGRAM} recommend",
    summary=(
        "Calculates each recommendation once, shows the calculation, and writes nothing. It has no memory, so "
        "nothing is held. "
        "Exit status 1 if a recommendation has no value, as with the status error or stale; 2 if the configuration or "
        "the cluster cannot be read."
    ),
    examples=(
        f"{PROGRAM} recommend --config recommender.yaml --cluster cluster.json",
        f"{PROGRAM} recommend --workload shop/web --prometheus-url http://prometheus:9090",
    ),
    flags=(
        Flag("config", PATH, "The configuration file; required without --workload."),
        Flag(
            "workload",
            TEXT,
            "NAMESPACE/NAME of one workload, in place of a file: its recommendation is deduced as `init` does.",
        ),
        Flag(
            "cluster",
            PATH,
            "Objects as `kubectl get … -o json` prints them: a file, or a folder of *.json and *.yaml. They "
            "replace the cluster.",
        ),
        Flag("recommendation", TEXT, "Only the recommendation of this name; may be repeated.", repeat=Repeat.EACH),
        output_flag(),
        switch("explain", "Also print each step to the sizes of node groups, each refusal, and each node that stays."),
        *WHAT_IF_FLAGS,
        *SHAPE_FLAGS,
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


_ANSWER_SECONDS: Final = 5.0
_ANSWER_QUERY: Final = "vector(1)"


def recommend(arguments: Sequence[str], program: str = PROGRAM) -> NoReturn:
    """Run the command; messages name the program that was called. Always raises SystemExit."""
    values = flags_or_exit(RECOMMEND, arguments)
    configure_quiet_logs_by(values)
    with rare_collections():
        _recommend(values, program)


def _recommend(values: FlagValues, program: str) -> NoReturn:
    try:
        configuration, read_inputs = _configuration_and_reader(values, program)
        configuration = _select_entries(configuration, values.texts("recommendation"))
        check_shape_flags(values)
        catalogue = values.path("shapes")
        if catalogue is not None:
            from recommender.commands.recommend.machine_shapes import recommend_shapes  # noqa: PLC0415 - it loads numpy

            is_found = recommend_shapes(catalogue, values, configuration, partial(_inputs, configuration, read_inputs))
            sys.exit(0 if is_found else 1)
        configuration = with_suggested_limits(configuration, values)
        question = what_if_of(values, configuration)
        configuration, inputs = with_assumptions(configuration, _inputs(configuration, read_inputs), question)
    except _UNREADABLE as error:
        exit_for_usage(program, str(error))
    now = time.time()
    with redirect_stdout(sys.stderr), no_collections():  # Output of plugins is not part of the answer.
        records = records_of(configuration, inputs, now)
    _print(values, records, now)
    sys.exit(0 if all(record.has_value for record in records) else 1)


def _select_entries(configuration: Configuration, names: tuple[str, ...]) -> Configuration:
    """Return the configuration with only the named recommendations; with all of them if none is named."""
    if not names:
        return configuration
    known = [each.policy.name for each in configuration.recommendations]
    known += [each.name for each in configuration.refused]
    for name in names:
        if name not in known:
            fix = did_you_mean(name, known, f"there are {', '.join(known) or 'none'}")
            raise UsageError(f"--recommendation: there is no recommendation {name!r}: {fix}")
    return replace(
        configuration,
        recommendations=tuple(each for each in configuration.recommendations if each.policy.name in names),
        refused=tuple(each for each in configuration.refused if each.name in names),
    )


def _configuration_and_reader(values: FlagValues, program: str) -> tuple[Configuration, ReadInputsFor]:
    """Return the configuration of the file or for the one workload, and the function that reads the cluster."""
    if values.path("config") is not None and "workload" in values.given:
        raise UsageError("--config and --workload cannot be combined: use --recommendation to choose one of the file")
    if "workload" in values.given:
        from recommender.commands.init.one_workload import configuration_of_workload  # noqa: PLC0415 - needed only without a file

        found = configuration_of_workload(values)
        for note in found.notes:
            print(f"{program}: {printable(note)}", file=sys.stderr)  # noqa: T201 - what a person reads
        # A workload has an entry of its own, so no series name targets.
        return found.configuration, lambda configuration, _targets: found.read_inputs(configuration)
    for name in sorted(values.given):
        is_of_shapes = name == "prometheus-url" and values.path("shapes") is not None
        if name.startswith("prometheus-") and not is_of_shapes:
            raise UsageError(f"--{name} is for --workload: with --config, `prometheus` of the file says what is asked")
    if "config" not in values.given:
        raise UsageError("--config is missing: name the configuration file, or a workload with --workload")
    return configuration_or_exit(values, program)[1], partial(_read_inputs, values)


def _inputs(configuration: Configuration, read_inputs: ReadInputsFor) -> Inputs:
    if configuration.refused and not configuration.recommendations:
        # The fault of the configuration is the answer; objects that nothing needs must not hide it.
        return Inputs()
    # These come first, since they may take long: facts that are read afterwards are still fresh when the decisions are
    # made.
    connections = check_backends(connections_of(configuration), backends_asked_by(configuration))
    loads, usage = load_inputs(configuration, connections), usage_inputs(configuration, connections)
    asked = with_query_values(configuration, connections, Inputs())
    return replace(
        read_inputs(configuration, targets_scaled_by_series(configuration, loads)),
        queries=asked.queries,
        queries_elsewhere=asked.queries_elsewhere,
        loads=loads,
        usage=usage,
    )


def _read_inputs(
    values: FlagValues, configuration: Configuration, further_targets: frozenset[TargetReference]
) -> Inputs:
    path = values.path("cluster")
    if path is not None:
        return inputs_of_files(path, configuration, time.time(), further_targets)
    if not configuration.recommendations:
        return Inputs()
    try:
        client = kubernetes_client(cluster_settings(values))
    except KubernetesError as error:
        raise UsageError(f"{error}; or give --cluster FILE to do without a cluster") from error
    try:
        return inputs_of_cluster(client, configuration, further_targets)
    except UnreachableError as error:
        raise UsageError(f"{unreachable_message(str(error))}; or give --cluster FILE") from error


def _print(values: FlagValues, records: Iterable[Record], now: float) -> None:
    records = list(records)
    if values.text("output") == "json":
        print(json_text(recommendation_list(records, now)))  # noqa: T201 - the output of the command
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    print(as_text(records, width=width, colour=is_coloured(), explain=values.boolean("explain")))  # noqa: T201 - likewise


def check_backends(
    connections: Mapping[str, BackendConnection], wanted: Collection[str]
) -> Mapping[str, BackendConnection]:
    """Return the connections to the wanted backends. Among several, those that do not answer have a `problem`."""
    chosen = {backend: each for backend, each in connections.items() if backend in wanted}
    if len(chosen) < 2:
        return chosen
    with ThreadPoolExecutor(len(chosen)) as threads:
        return dict(zip(chosen, threads.map(_connection_with_problem, chosen.values()), strict=True))


def _connection_with_problem(connection: BackendConnection) -> BackendConnection:
    if connection.settings is None:
        return connection
    try:
        with PrometheusClient(connection.settings) as client:
            client.instant(_ANSWER_QUERY, timeout_seconds=_ANSWER_SECONDS)
    except (PrometheusError, SettingsError) as error:
        return replace(connection, problem=f"it does not answer: {error}")
    return connection
