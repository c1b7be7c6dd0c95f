"""`tidewatch-recommender recommend`: decides once, says why, and writes nothing."""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from adapter.foundation.cluster.files.reading import ClusterFilesError
from adapter.foundation.cluster.values.state import Observed
from adapter.foundation.documents.tree import nearest
from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.version import program_version
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import BOOLEAN, PATH, TEXT, CommandFlags, Flag, Repeat, one_of
from adapter.foundation.service.runtime.garbage_collector import rare_collections
from adapter.foundation.sources.kubernetes.access import access
from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.prometheus.client import PrometheusClient
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.program import PROGRAM
from recommender.commands.recommend.cluster_inputs import inputs_of_cluster
from recommender.commands.recommend.file_inputs import inputs_of_files
from recommender.commands.recommend.load_inputs import QUERY_SECONDS, load_inputs
from recommender.commands.recommend.what_if import WHAT_IF_FLAGS, what_if_of, with_assumptions
from recommender.commands.suggested_limits import with_suggested_limits
from recommender.configuration.needs import needs_of_one, queries_of
from recommender.decisions.failures import refused_record
from recommender.decisions.inputs import ConfigMapData, Inputs
from recommender.printed.document import recommendation_list
from recommender.printed.table import as_text
from recommender.running.memory.memories import Memories
from recommender.running.memory.store import ProcessMemoryStore
from recommender.running.plans import plan_of
from recommender.running.poll_decisions import PollDecisions
from recommender.running.query_values import QueryValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.foundation.cluster.values.state import Unknown
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.record import Record
    from recommender.kinds.kind import Recommendation


def with_defaults(recommendation: Recommendation, inputs: Inputs) -> tuple[Recommendation, Inputs]:
    """Return both as they are once a missing ConfigMap has been created; a note says that it is missing now."""
    for (namespace, name), default in needs_of_one(recommendation).config_maps.items():
        found = inputs.config_maps.get((namespace, name))
        if default is None or not isinstance(found, Observed) or found.value is not None:
            continue
        note = f"the ConfigMap {namespace}/{name} does not exist: these are the default parameters"
        created: Observed[ConfigMapData | None] = Observed(ConfigMapData(default, ""), found.time)
        recommendation = replace(recommendation, policy=replace(recommendation.policy, note=note))
        inputs = replace(inputs, config_maps={**inputs.config_maps, (namespace, name): created})
    return recommendation, inputs


_QUERIES_AT_ONCE = 8
_WIDTH: Final = 80
"""Of a line that is printed to something else than a terminal."""

RECOMMEND = CommandFlags(
    program=f"{PROGRAM} recommend",
    version=program_version(),
    summary=(
        "Calculates each recommendation once, shows the calculation, and writes nothing. It has no memory, so "
        "nothing is held. "
        "Exit status 1 if a recommendation has no value, as with the status error or stale; 2 if the configuration or "
        "the cluster cannot be read."
    ),
    examples=(
        f"{PROGRAM} recommend --config recommender.yaml --cluster cluster.json",
        f"{PROGRAM} recommend --config recommender.yaml --assume shop/web:40 -o json",
    ),
    flags=(
        Flag(name="config", kind=PATH, help="The configuration file.", required=True),
        Flag(
            name="cluster",
            kind=PATH,
            help="Objects as `kubectl get … -o json` prints them: a file, or a folder of *.json and *.yaml. "
            "They replace the cluster.",
        ),
        Flag(
            name="recommendation",
            kind=TEXT,
            help="Only the recommendation of this name; may be repeated.",
            repeat=Repeat.EACH,
        ),
        Flag(
            name="output",
            short="o",
            kind=one_of("text", "table", "json"),
            default="text",
            help="How the result is printed; table is another name for text.",
        ),
        Flag(
            name="explain",
            kind=BOOLEAN,
            default=False,
            help="Also print each step to the sizes of node groups, each refusal, and each node that stays.",
        ),
        *WHAT_IF_FLAGS,
        *CLUSTER_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


def recommend(arguments: Sequence[str]) -> NoReturn:
    """Run the command; leaves by SystemExit."""
    values = flags_or_exit(RECOMMEND, arguments, os.environ)
    configure_quiet_logs_by(values)
    with rare_collections():
        _recommend(values)


def _recommend(values: FlagValues) -> NoReturn:
    try:
        _, configuration = configuration_or_exit(values)
        configuration = _select_entries(configuration, values.texts("recommendation"))
        configuration = with_suggested_limits(configuration, values)
        question = what_if_of(values, configuration)
        configuration, inputs = with_assumptions(configuration, _inputs(values, configuration), question)
    except (UsageError, ClusterFilesError, KubernetesError) as error:
        exit_for_usage(PROGRAM, str(error))
    now = time.time()
    records = _records(configuration, inputs, now)
    _print(values, records, now)
    sys.exit(0 if all(record.has_value for record in records) else 1)


def _select_entries(configuration: Configuration, names: tuple[str, ...]) -> Configuration:
    """Return the configuration with the named recommendations alone; with all of them if none is named."""
    if not names:
        return configuration
    known = [each.policy.name for each in configuration.recommendations]
    known += [each.name for each in configuration.refused]
    for name in names:
        if name not in known:
            meant = nearest(name, known)
            fix = f"did you mean {meant}?" if meant else f"there are {', '.join(known) or 'none'}"
            raise UsageError(f"--recommendation: there is no recommendation {name!r}: {fix}")
    return replace(
        configuration,
        recommendations=tuple(each for each in configuration.recommendations if each.policy.name in names),
        refused=tuple(each for each in configuration.refused if each.name in names),
    )


def _inputs(values: FlagValues, configuration: Configuration) -> Inputs:
    if configuration.refused and not configuration.recommendations:
        # What is wrong with the configuration is the answer; objects that nothing asks for must not hide it.
        return Inputs()
    # First, since they may take long: what is read afterwards is still fresh when the decisions are made.
    loads = load_inputs(configuration)
    queries = _query_values(configuration)
    path = values.path("cluster")
    if path is not None:
        return replace(inputs_of_files(path, configuration, time.time()), queries=queries, loads=loads)
    if not configuration.recommendations:
        return Inputs()
    return replace(inputs_of_cluster(_client(values), configuration), queries=queries, loads=loads)


def _query_values(configuration: Configuration) -> dict[str, Observed[float] | Unknown]:
    """Return the value of each query; none of them waits for another one that is slow."""
    queries = sorted(queries_of(configuration))
    if not queries:
        return {}
    values = QueryValues(PrometheusClient, UNPACED, QUERY_SECONDS)
    values.use(configuration.prometheus)
    try:
        with ThreadPoolExecutor(_QUERIES_AT_ONCE) as threads:
            return dict(zip(queries, threads.map(values.value, queries), strict=True))
    finally:
        values.close()


def _client(values: FlagValues) -> KubernetesClient:
    kubeconfig = values.path("kubeconfig")
    try:
        return KubernetesClient(access(str(kubeconfig) if kubeconfig else None, values.text("context") or None))
    except KubernetesError as error:
        raise UsageError(f"{error}; or give --cluster FILE to do without a cluster") from error


def _records(configuration: Configuration, inputs: Inputs, now: float) -> list[Record]:
    """Return the records in the order of the file; with `forEach` one for each target."""
    lines = {each.policy.name: each.line for each in configuration.recommendations}
    recommendations = []
    for each in configuration.recommendations:
        recommendation, inputs = with_defaults(each, inputs)
        recommendations.append(recommendation)
    plan = plan_of(replace(configuration, recommendations=tuple(recommendations)))
    decided = PollDecisions(Memories(ProcessMemoryStore()), _Unmeasured(), Clock()).decided(plan, inputs, now)
    found = [(lines[each.name], decision.record) for each in decided for decision in each.decisions]
    found += [(each.line, refused_record(each, now)) for each in configuration.refused]
    return [record for _, record in sorted(found, key=lambda item: item[0])]


class _Unmeasured:
    """Decisions that are made once are not measured."""

    def decided(self, recommendation: str, seconds: float) -> None:
        """Do nothing."""


def _print(values: FlagValues, records: Iterable[Record], now: float) -> None:
    records = list(records)
    if values.text("output") == "json":
        document = msgspec.json.encode(recommendation_list(records, now))
        print(msgspec.json.format(document, indent=2).decode())  # noqa: T201 - what was asked for
        return
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _WIDTH
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    print(as_text(records, width=width, colour=colour, explain=values.boolean("explain")))  # noqa: T201 - likewise
