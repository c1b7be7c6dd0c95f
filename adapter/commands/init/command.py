"""`tidewatch-adapter init`: writes rules and HPAs for the exporters whose series Prometheus holds."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from adapter.commands.doctor.prometheus import judge_prometheus
from adapter.commands.init.proposal import RULES_FILE, ProposedFiles, proposal
from adapter.commands.init.rules_text import unused_text
from adapter.commands.init.trying import try_rules
from adapter.commands.program import PROGRAM
from adapter.foundation.exporters.held_series import has_targets, held_metrics, recognise_each
from adapter.foundation.exporters.table import KNOWN
from adapter.foundation.files.new_files import NewFilesError, refuse_existing, write_new_files
from adapter.foundation.options.backend_checks import refuse_several_clusters
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings
from adapter.foundation.options.found_prometheus import FoundPrometheus, find_prometheus, given_prometheus
from adapter.foundation.options.logs import LOG_FLAGS, configure_logs_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS
from adapter.foundation.reports.questions import ask_on_terminal
from adapter.foundation.reports.terminal_escaping import printable
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit
from adapter.foundation.service.flags.table import PATH, CommandFlags, Flag, FlagValues
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.prometheus.errors import IncompleteAnswerError, PrometheusError, SettingsError
from adapter.foundation.sources.prometheus.queries.budget import Budgeted
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from adapter.foundation.time.timestamps import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.foundation.exporters.recognition import UnusedMetric

ALL_QUERIES_SECONDS: Final = 60.0
"""Time limit for all queries together; metrics that are left out because of it are named in the rule file."""

INIT = CommandFlags(
    program=f"{PROGRAM} init",
    summary=(
        "Looks up which exporters' series Prometheus holds, and writes rules for them that work now and examples of "
        "HPAs. Never overwrites a file. Exits with status 1 if it finds nothing to serve, and with 2 if Prometheus "
        "cannot be read or the files cannot be written."
    ),
    examples=(
        f"{PROGRAM} init --kubeconfig kubeconfig",
        f"{PROGRAM} init --prometheus-url http://prometheus:9090 --out tidewatch",
    ),
    flags=(
        Flag(
            "out",
            PATH,
            "Folder for the files, which is created if it does not exist.",
            default=Path(),
        ),
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *LOG_FLAGS,
    ),
)


class _NothingToServeError(Exception):
    """Prometheus holds no series from which a rule can be made; the message says what to do."""


def init(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(INIT, arguments)
    configure_logs_by(values)
    try:
        prometheus = _prometheus(values)
        found = _write_files(values, prometheus)
    except IncompleteAnswerError as error:
        exit_for_usage(PROGRAM, f"{error}: check the stores behind --prometheus-url")
    except PrometheusError as error:
        line = judge_prometheus(prometheus.url, error)
        exit_for_usage(PROGRAM, f"{line.message}: {line.fix}")
    except (UsageError, SettingsError, NewFilesError) as error:
        exit_for_usage(PROGRAM, str(error))
    except _NothingToServeError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)  # noqa: T201 - what a person reads
        sys.exit(1)
    print("\n".join(found.lines))  # noqa: T201 - the output of the command
    sys.exit(0)


def _prometheus(values: FlagValues) -> FoundPrometheus:
    """Return the Prometheus that a flag names or that was found in the cluster. Raises UsageError."""
    if "prometheus-url" in values.given:
        return given_prometheus(values)
    settings = cluster_settings(values)
    try:
        return find_prometheus(kubernetes_client(settings), settings, values, ask_on_terminal)
    except KubernetesError as error:
        raise UsageError(f"{error}; or give --prometheus-url to do without a cluster") from error


def _write_files(values: FlagValues, asked: FoundPrometheus) -> ProposedFiles:
    """Write the files, and return them with their descriptions. Raises PrometheusError and other errors of `init`."""
    folder = values.path("out") or Path()
    refuse_existing(folder, (RULES_FILE,))
    with PrometheusClient(asked.settings) as prometheus:
        refuse_several_clusters(asked)
        client = Budgeted(prometheus, ALL_QUERIES_SECONDS)
        held = held_metrics(client, KNOWN)
        if not held:
            raise _NothingToServeError(_nothing_held(client, asked.url))
        usable, unlabelled = recognise_each(client, held)
        rules, refused = try_rules(client, usable)
        unused = (*unlabelled, *refused)
        if not rules:
            raise _NothingToServeError(_nothing_usable(asked.url, unused))
        found = proposal(folder, asked.url, rfc3339(time.time()), rules, unused)
    write_new_files(folder, found.files)
    return found


def _nothing_held(client: Budgeted, address: str) -> str:
    exporters = ", ".join(dict.fromkeys(known.exporter for known in KNOWN))
    if not has_targets(client):
        return (
            f"{address} scrapes no target: configure what it scrapes, or name another Prometheus with --prometheus-url"
        )
    return (
        f"{address} holds no series of a known exporter ({exporters}): scrape one of them, or write a rule for "
        "your own series as docs/rules.md describes"
    )


def _nothing_usable(address: str, unused: Sequence[UnusedMetric]) -> str:
    first = "no series have a sample now" if not unused else printable(unused_text(unused[0]))
    others = f" (and {len(unused) - 1} others)" if len(unused) > 1 else ""
    return f"{address} holds series of known exporters, but none that can be served: {first}{others}"
