"""`tidewatch-recommender init`: a configuration that works now, from the facts in Prometheus and the cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from adapter.foundation.cluster.files.reading import ClusterFilesError
from adapter.foundation.files.new_files import NewFilesError, refuse_existing, write_new_files
from adapter.foundation.options.cluster import CLUSTER_FLAGS
from adapter.foundation.options.cluster_checks import unreachable_message
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS
from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.questions import ask_on_terminal
from adapter.foundation.reports.terminal_escaping import printable
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import PATH, CommandFlags, Flag, FlagValues
from adapter.foundation.service.runtime.garbage_collector import rare_collections
from adapter.foundation.sources.kubernetes.errors import KubernetesError, UnreachableError
from adapter.foundation.sources.prometheus.errors import IncompleteAnswerError, PrometheusError, SettingsError
from recommender.commands.init.configuration_text import configuration_text, found_by_service, prometheus_lines
from recommender.commands.init.current_values import decided_now, value_sentence
from recommender.commands.init.proposing import proposed_entries
from recommender.commands.init.sources_from_flags import asked_sources
from recommender.commands.init.terminal_answers import with_answers
from recommender.commands.program import PROGRAM
from recommender.decisions.texts.times import rfc3339

FILE: Final = "recommender.yaml"

INIT = CommandFlags(
    program=f"{PROGRAM} init",
    summary=(
        "Looks up loads in Prometheus, and add-ons and node groups in the cluster, and writes a configuration that "
        "works now and scales nothing. Never overwrites a file. Exits with status 1 if it finds nothing to recommend, "
        "and with 2 if Prometheus or the cluster cannot be read or the file cannot be written."
    ),
    examples=(
        f"{PROGRAM} init --kubeconfig kubeconfig --out tidewatch",
        f"{PROGRAM} init --prometheus-url http://prometheus:9090 --cluster cluster.json",
    ),
    flags=(
        Flag(
            "out",
            PATH,
            "Folder for the file, which is created if it does not exist.",
            default=Path(),
        ),
        Flag(
            "cluster",
            PATH,
            "Objects as `kubectl get … -o json` prints them: a file, or a folder of *.json and *.yaml. They "
            "replace the cluster.",
        ),
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


def init(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(INIT, arguments)
    configure_quiet_logs_by(values)
    try:
        with rare_collections():
            lines = _write_file(values)
    except IncompleteAnswerError as error:
        exit_for_usage(PROGRAM, f"{error}: check the stores behind --prometheus-url")
    except PrometheusError as error:
        exit_for_usage(PROGRAM, f"Prometheus: {error.cause}: check --prometheus-url and the other --prometheus flags")
    except UnreachableError as error:
        exit_for_usage(PROGRAM, f"{unreachable_message(str(error))}; or give --cluster FILE")
    except (
        UsageError,
        SettingsError,
        NewFilesError,
        KubernetesError,
        ClusterFilesError,
    ) as error:
        exit_for_usage(PROGRAM, str(error))
    if lines is None:
        print(  # noqa: T201 - what a person reads
            f"{PROGRAM}: no load of a workload, known add-on or provider's label of node groups was found: let "
            "Prometheus scrape an exporter that docs/init.md lists, or name a cluster that has one of them with "
            "--kubeconfig or --cluster",
            file=sys.stderr,
        )
        sys.exit(1)
    print("\n".join(map(printable, lines)))  # noqa: T201 - the output of the command
    sys.exit(0)


def _write_file(values: FlagValues) -> list[str] | None:
    """Write the file, and return its content; None if there is nothing to write. Raises errors that `init` reports."""
    folder = values.path("out") or Path()
    refuse_existing(folder, (FILE,))
    with asked_sources(values) as sources:
        found, seen = sources.prometheus, sources.seen
        proposed = proposed_entries(sources.queries, seen)
    drafts = tuple(with_answers(each, ask_on_terminal) for each in proposed)
    if not drafts:
        return None
    stated = prometheus_lines(
        found_by_service(found.settings) if found.is_behind_api_server else found.settings, found.url
    )
    source = f"Recommendations for what {found.url} held at {rfc3339(time.time())}, written by `{PROGRAM} init`."
    header = (
        f"{source} The values are those of that moment. Nothing is scaled until you write `outputs: [scale]`.",
        f"Start `{PROGRAM} run --config {folder / FILE}`: sizes are forecasts there, once the models have learned.",
    )
    text = configuration_text(header, stated, drafts, {}, seen.unused)
    _, records = decided_now(text, found.settings, seen.read_inputs)
    now = {record.name: value_sentence(record) for record in records}
    write_new_files(folder, {FILE: configuration_text(header, stated, drafts, now, seen.unused)})
    lines = [f"{folder / FILE}: {count_of(len(now), 'recommendation')}"]
    lines += [f"  {name}: {value}" for name, value in now.items()]
    lines += [
        f"  {draft.name}: left as a comment: {' '.join(fact.question for fact in draft.missing)}"
        for draft in drafts
        if draft.missing
    ]
    return lines
