"""Six namespaces with requests, and a scripted Prometheus that answers what a query asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import QueryRefusedError
from adapter.metrics.readings.answers import BySelector
from tests.support.readings import Harness, MadeUpObjects, reply

if TYPE_CHECKING:
    from tests.support.readings import Reply


NAMESPACES = [f"ns{number}" for number in range(6)]
ALL_SAMPLES = reply(*(({"namespace": ns, "pod": "web-0"}, str(index)) for index, ns in enumerate(NAMESPACES)))
OBJECTS = MadeUpObjects({ns: ["web-0"] for ns in NAMESPACES})
WEB = BySelector(parse_selector("app=web"))
WIDE = 'namespace!=""'


def answer_as_asked(query: str) -> Reply:
    """Give the namespace's own sample to a query of one namespace, and all samples to a wide query."""
    if WIDE in query:
        return ALL_SAMPLES
    return reply(
        *(({"pod": "web-0"}, value) for labels, value in ALL_SAMPLES.samples if f'"{labels["namespace"]}"' in query)
    )


def refuse_wide(query: str) -> Reply | QueryRefusedError:
    return QueryRefusedError(query, "execution", "too many") if WIDE in query else answer_as_asked(query)


def ask(harness: Harness, namespace: str, name: str = "http_rps") -> float:
    ((_, value),) = harness.readings.objects(harness.pods(name), namespace, WEB, EVERYTHING).values
    return value


def wide(queries: list[str]) -> list[bool]:
    return [WIDE in query for query in queries]
