"""The current value of each entry, which is read by the strict reader and decided once, as when `run` starts."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from adapter.foundation.reports.counts import count_of
from recommender.commands.recommend.cluster_inputs import inputs_of_cluster
from recommender.commands.recommend.deciding import records_of, with_query_values
from recommender.commands.recommend.file_inputs import inputs_of_files
from recommender.commands.recommend.history_inputs import QUERY_SECONDS
from recommender.configuration.reading import read_configuration
from recommender.running.queries.backend_queries import connections_of, queries_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.foundation.sources.kubernetes.client import KubernetesClient
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.record import Record

    ReadInputs = Callable[[Configuration], Inputs]


def inputs_by_server(client: KubernetesClient) -> ReadInputs:
    """Return a function that reads inputs from the API server."""
    return lambda configuration: inputs_of_cluster(client, configuration)


def inputs_by_files(path: Path) -> ReadInputs:
    """Return a function that reads inputs from the files of `--cluster`."""
    return lambda configuration: inputs_of_files(path, configuration, time.time())


def inputs_by_documents(documents: Sequence[Mapping[str, object]]) -> ReadInputs:
    """Return a function that reads inputs from objects that were made from kube-state-metrics' series."""

    def read(configuration: Configuration) -> Inputs:
        with tempfile.TemporaryDirectory(prefix="tidewatch-init-") as folder:
            file = Path(folder) / "cluster.json"
            file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents}))
            return inputs_of_files(file, configuration, time.time())

    return read


def decided_now(text: str, settings: PrometheusSettings, read: ReadInputs) -> tuple[Configuration, list[Record]]:
    """Read the text of a file strictly, and return its configuration and the decision on each entry.

    `settings` replace the section `prometheus` of the file. Raises ConfigurationFileError, KubernetesError and
    ClusterFilesError.
    """
    configuration = replace(read_configuration(text, "recommender.yaml"), prometheus=settings)
    if not configuration.recommendations:
        return configuration, []
    # It loads numpy, which other commands do not need.
    from recommender.running.loads.single_decision_loads import load_inputs_at_start  # noqa: PLC0415

    connections = connections_of(configuration)
    with queries_to(connections, QUERY_SECONDS) as queries:
        loads = load_inputs_at_start(configuration, queries)
    inputs = with_query_values(configuration, connections, replace(read(configuration), loads=loads))
    return configuration, records_of(configuration, inputs, time.time())


def value_sentence(record: Record) -> str:
    """Return the value of a record and how it was found, in one sentence."""
    if record.replicas is None and not record.has_value:
        return f"no value: {record.message}."
    steps = "; ".join(f"{step.step} {step.value:g}: {step.detail}" for step in record.steps)
    if record.replicas is None:
        return f"{record.message}."
    size = count_of(record.replicas, "replica")
    current = [each.current_replicas for each in record.targets if each.current_replicas is not None]
    held = f" recommended, {current[0]} running" if current else ""
    return f"{size}{held} ({steps})." if steps else f"{size}{held}."
