"""The form of the cases: a rule file as people write them, its series, and the expected answers.

All expected answers were worked out by hand. Beside each request is the query that prometheus-adapter sends for it,
written out, whose result in Prometheus must be the expected one too. So neither a mistake of the case's author nor one
of the adapter, which may send another query for many clients, goes unnoticed.

A series is one line: labels, and a constant (`queue{a="b"} 7`) or how fast a counter rises (`calls{a="b"} 2.5005/s`).
Rates lie between two thousandths, so that no rounding in Prometheus's arithmetic changes the reported value.
"""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tests.support.caller import CUSTOM, EXTERNAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STEP_SECONDS = 15
PAST_SECONDS = 900
FUTURE_SECONDS = 1800
COUNTED_SECONDS = 86_400
"""How long counters have been rising: none is near zero, where Prometheus extrapolates over a shorter time."""

_CROWD = tuple(f"team-{number}" for number in range(5))

Labels: TypeAlias = "Mapping[str, str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A request for a custom metric, by what follows the API version in its path."""

    path: str
    select: str = ""
    """The `labelSelector`, which selects objects."""
    metrics: str = ""
    """The `metricLabelSelector`, which selects series."""
    status: int = 200
    values: Mapping[str, str] = field(default_factory=dict)
    """Quantity by object."""
    values_before: Mapping[str, str] | None = None
    """The values with `--compatibility=prometheus-adapter`, where they differ."""
    status_before: int | None = None
    query: str = ""
    """The query of prometheus-adapter; empty if it sends none, or if its answer is one that we refuse to give."""
    label: str = "pod"
    """The label that holds the object's name in the query's result."""
    message: str = ""
    """The beginning of the message of a failure, for either adapter."""

    @property
    def target(self) -> str:
        """Return the path of the request below an API version."""
        return _target(self.path, labelSelector=self.select, metricLabelSelector=self.metrics)

    @property
    def crowd(self) -> tuple[str, ...]:
        """Return the requests of many other namespaces for the same metric by the same selector."""
        root, _, *rest = self.path.split("/")
        if root != "namespaces" or rest[0] == "metrics":
            return ()
        resource, _, metric = rest
        paths = (f"namespaces/{name}/{resource}/any/{metric}" for name in _CROWD)
        return tuple(f"{CUSTOM}/v1beta2/{_target(path, metricLabelSelector=self.metrics)}" for path in paths)

    def url(self, version: str) -> str:
        """Return the URL of the request."""
        return f"{CUSTOM}/{version}/{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A request for an external metric: `NAMESPACE/METRIC`."""

    path: str
    select: str = ""
    """The `labelSelector`, which selects series."""
    status: int = 200
    rows: tuple[tuple[Labels, str], ...] = ()
    """Labels and quantity of each row."""
    query: str = ""
    message: str = ""

    @property
    def target(self) -> str:
        """Return the path of the request below the API."""
        return self._target_in(self.path.partition("/")[0])

    @property
    def crowd(self) -> tuple[str, ...]:
        """Return the requests of many other namespaces for the same metric by the same selector."""
        return tuple(f"{EXTERNAL}/{self._target_in(name)}" for name in _CROWD)

    @property
    def url(self) -> str:
        """Return the URL of the request."""
        return f"{EXTERNAL}/{self.target}"

    def _target_in(self, namespace: str) -> str:
        return _target(f"namespaces/{namespace}/{self.path.partition('/')[2]}", labelSelector=self.select)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A request for the usage of pods or nodes, by what follows the API version in its path."""

    path: str
    select: str = ""
    used: Mapping[str, Mapping[str, Mapping[str, str]]]
    """Quantity by object, container and resource; the container of a node has no name."""
    left_out: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """Results of the queries for objects that the answer leaves out because not everything about them is known."""
    labels: tuple[str, ...] = ("pod", "container")
    """The labels that hold the names of object and container in the queries' results."""
    cpu: str = ""
    """The CPU query of prometheus-adapter; empty if its answer adds nothing to the case."""
    memory: str = ""

    @property
    def target(self) -> str:
        """Return the path of the request below the API."""
        return _target(self.path, labelSelector=self.select)

    @property
    def url(self) -> str:
        """Return the URL of the request."""
        return f"/apis/metrics.k8s.io/v1beta1/{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A rule file and its results; no two cases of one harness have series or metrics of the same name."""

    name: str
    rules: str
    series: str
    custom: Mapping[str, bool] = field(default_factory=dict)
    """All metrics that are listed: `resource/metric`, and whether it is namespaced."""
    external: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    """The listed metrics whose series do not exist; prometheus-adapter does not list them."""
    asks: tuple[Custom | External | Usage, ...] = ()


def _target(path: str, **parameters: str) -> str:
    encoded = "/".join(urllib.parse.quote(segment, safe="") for segment in path.split("/"))
    given = {name: value for name, value in parameters.items() if value}
    return f"{encoded}?{urllib.parse.urlencode(given)}" if given else encoded


def samples_of(cases: Iterable[Case], now: int) -> list[str]:
    """Return the samples of all series as lines of OpenMetrics, from the past into the future."""
    start = now - now % STEP_SECONDS
    moments = range(start - PAST_SECONDS, start + FUTURE_SECONDS, STEP_SECONDS)
    lines = sorted(line for case in cases for line in case.series.splitlines() if line)
    return [
        f"{series} {_value(text, moment - start)} {moment}"
        for series, text in map(_series_and_value, lines)
        for moment in moments
    ]


def _series_and_value(line: str) -> tuple[str, str]:
    series, _, value = line.rpartition(" ")
    return series, value


def _value(text: str, seconds: int) -> str:
    rate, per, _ = text.partition("/s")
    return str(float(rate) * (COUNTED_SECONDS + seconds)) if per else text
