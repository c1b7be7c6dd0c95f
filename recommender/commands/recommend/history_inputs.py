"""Reads the histories that recommendations need: loads, with progress on a terminal, and the usage of containers."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from adapter.foundation.time.clock import Clock
from recommender.child_processes.parent import Children
from recommender.commands.program import METRICS_PREFIX
from recommender.running.loads.load_needs import load_needs_of
from recommender.running.queries.backend_queries import BackendConnection, queries_to
from recommender.running.usage.usage_needs import usage_needs_of
from recommender.running.usage.usage_service import LONGEST_QUERY_SECONDS, UsageService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adapter.foundation.cluster.values.state import Observed, Unknown
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.decisions.loads.load_inputs import LoadInputs
    from recommender.decisions.record import TargetReference

QUERY_SECONDS = 20.0
_ERASE_LINE = "\r\x1b[K"


def load_inputs(
    configuration: Configuration, connections: Mapping[str, BackendConnection]
) -> Mapping[str, LoadInputs | Unknown]:
    """Return the loads by recommendation; reading each may take a minute."""
    if not load_needs_of(configuration):
        return {}
    # It loads numpy, which other recommendations do not need.
    from recommender.running.loads.single_decision_loads import load_inputs_once  # noqa: PLC0415

    children = Children(CollectorRegistry(), METRICS_PREFIX, most=1)
    with queries_to(connections, QUERY_SECONDS) as queries, closing(children), _progress() as report:
        return load_inputs_once(configuration, queries, children.run, report)


def usage_inputs(
    configuration: Configuration, connections: Mapping[str, BackendConnection]
) -> Mapping[str, Mapping[TargetReference, Observed[object] | Unknown] | Unknown]:
    """Return the usage by recommendation, as a recommender that has been running for a long time would see it.

    The history is read from Prometheus unless a recommender has stored it in the folder `state` of the configuration.
    Nothing is written.
    """
    if not usage_needs_of(configuration):
        return {}
    # The service chooses its connections itself.
    with queries_to({}, LONGEST_QUERY_SECONDS) as queries:
        service = UsageService(queries, configuration.state, Clock())
        service.use(configuration, connections)
        service.read_once()
        return service.inputs()


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that replaces the line shown on the terminal; without a terminal, it shows nothing."""
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
