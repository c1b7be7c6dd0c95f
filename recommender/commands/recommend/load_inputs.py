"""The loads of predictive recommendations, with their progress on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from adapter.foundation.sources.prometheus.client import PrometheusClient
from adapter.foundation.time.pace import UNPACED
from recommender.child_processes.parent import Children
from recommender.commands.program import METRICS_PREFIX
from recommender.running.loads.needs import load_needs_of
from recommender.running.query_values import QueryValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import Unknown
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loads.inputs import LoadInputs

QUERY_SECONDS = 20.0
_ERASE_LINE = "\r\x1b[K"


def load_inputs(configuration: Configuration) -> Mapping[str, LoadInputs | Unknown]:
    """Return the loads by recommendation; it may take a minute for each."""
    if not load_needs_of(configuration):
        return {}
    # It loads numpy, which other recommendations have no use for.
    from recommender.running.loads.single_run import load_inputs_once  # noqa: PLC0415

    queries = QueryValues(PrometheusClient, UNPACED, QUERY_SECONDS)
    queries.use(configuration.prometheus)
    children = Children(CollectorRegistry(), METRICS_PREFIX, most=1)
    try:
        with _progress() as report:
            return load_inputs_once(configuration, queries, children.run, report)
    finally:
        children.close()
        queries.close()


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield what shows a line in place of the last one; without a terminal nothing is shown."""
    if not sys.stderr.isatty():
        yield lambda _line: None
        return

    def show(line: str) -> None:
        sys.stderr.write(f"{_ERASE_LINE}{line}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        show("")
