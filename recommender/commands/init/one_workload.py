"""Deduces the configuration for one workload as `init` does, for a decision without a configuration file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from adapter.foundation.options.cluster import object_name
from adapter.foundation.reports.questions import ask_on_terminal
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.prometheus.errors import IncompleteAnswerError, PrometheusError, SettingsError
from recommender.commands.init.configuration_text import configuration_text, prometheus_lines
from recommender.commands.init.proposing import Surroundings, proposed_entries
from recommender.commands.init.sources_from_flags import AskedSources, asked_sources
from recommender.commands.init.terminal_answers import with_answers
from recommender.commands.program import PROGRAM
from recommender.configuration.reading import read_configuration

if TYPE_CHECKING:
    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.service.flags.table import FlagValues
    from recommender.commands.init.current_values import ReadInputs
    from recommender.commands.init.drafts import Draft
    from recommender.configuration.recommender_configuration import Configuration


@dataclass(frozen=True, slots=True)
class WorkloadConfiguration:
    """The configuration for one workload, and the function that reads its inputs."""

    configuration: Configuration
    read_inputs: ReadInputs
    notes: tuple[str, ...]
    """The deduced values with their reasons."""


def configuration_of_workload(values: FlagValues) -> WorkloadConfiguration:
    """Return the configuration for `--workload`. Raises UsageError, KubernetesError and ClusterFilesError."""
    wanted = object_name("workload", values.text("workload"))
    try:
        with asked_sources(values) as sources:
            draft = with_answers(_draft(sources, wanted), ask_on_terminal)
    except IncompleteAnswerError as error:
        raise UsageError(f"{error}: check the stores behind --prometheus-url") from error
    except PrometheusError as error:
        raise UsageError(f"--prometheus-url: {error.cause}: check the address and the credentials") from error
    except SettingsError as error:
        raise UsageError(str(error)) from error
    if draft.missing:
        lacking = " and ".join(fact.key for fact in draft.missing)
        raise UsageError(
            f"--workload {wanted}: {lacking} cannot be deduced from what Prometheus and the cluster know: answer at a "
            f"terminal, or fill it in the file that `{PROGRAM} init` writes"
        )
    prometheus = sources.prometheus
    text = configuration_text((), prometheus_lines(prometheus.settings, prometheus.url), (draft,), {}, ())
    configuration = replace(read_configuration(text, "--workload"), prometheus=prometheus.settings)
    return WorkloadConfiguration(configuration, sources.seen.read_inputs, draft.notes)


def _draft(sources: AskedSources, wanted: ObjectName) -> Draft:
    drafts = proposed_entries(sources.queries, _surroundings_of(sources.seen, wanted))
    if not drafts:
        raise UsageError(
            f"--workload {wanted}: no series of a known exporter is its load, and it is not a known add-on: "
            "docs/init.md lists both; write a configuration file with its load"
        )
    if len(drafts) > 1:
        raise UsageError(f"--workload {wanted}: a Deployment and a StatefulSet have this name: write a file for one")
    return drafts[0]


def _surroundings_of(seen: Surroundings, wanted: ObjectName) -> Surroundings:
    """Return the facts that concern only this workload."""
    key = (wanted.namespace, wanted.name)
    replicas = {each: size for each, size in seen.cluster.replicas.items() if (each.namespace, each.name) == key}
    return replace(
        seen,
        cluster=replace(seen.cluster, replicas=replicas, node_labels=()),
        loads=tuple(load for load in seen.loads if (load.workload.namespace, load.workload.name) == key),
    )
