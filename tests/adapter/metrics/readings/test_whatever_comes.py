"""Whatever Prometheus answers, no value is another namespace's, too old, not a number, or made up.

The Prometheus of these tests ignores the matchers of its queries, as if a rule did not use them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.errors import ReadingError
from adapter.metrics.readings.samples.no_data_and_sample_age import STANDS_IN
from tests.adapter.metrics.apis.fakes import PODS
from tests.support.readings import MadeUpObjects, make_harness, rulebook_of
from tests.support.scripted_answers import Came, Script, Scripted, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.readings import Harness

_LABELS: Final = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"


def _usage(resource: str) -> str:
    return f"""
  {resource}:
    containerQuery: 'sum by (<<.GroupBy>>) ({resource}{{<<.LabelMatchers>>}})'
    resources: {_LABELS}
    containerLabel: container
"""


RULEBOOK: Final = rulebook_of(f"""
rules:
- seriesQuery: raw
  resources: {_LABELS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
- seriesQuery: highest
  resources: {_LABELS}
  metricsQuery: 'topk(3, sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}}))'
- seriesQuery: filled
  resources: {_LABELS}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
  onNoData: 250m
externalRules:
- seriesQuery: rows
  resources: {_LABELS}
  metricsQuery: '<<.Series>>{{<<.LabelMatchers>>}}'
resourceRules:{_usage("cpu")}{_usage("memory")}
  window: 2m
""")
"""Rules with queries of every plan, and one with a value for missing data."""
NAMESPACES: Final = ("shop", "other", "bank", "docs", "mail")
"""More namespaces than are queried one by one."""
OBJECTS: Final = MadeUpObjects({name: ["web-0", "web-1"] for name in NAMESPACES})
ALL: Final = BySelector(EVERYTHING)
MOST_SECONDS: Final = 60

VALUES: Final = st.sampled_from(["1", "2", "0", "-1", "1e308", "NaN", "+Inf", "-Inf", "histogram"])
LATE: Final = st.sampled_from([0.0, 0.0, 0.0, 30.0, 61.0, -30.0, -61.0])
OF_PODS: Final = labels_of(
    pod=st.sampled_from(["web-0", "web-0", "web-1", "gone-0", ""]),
    namespace=st.sampled_from(["", "shop", "shop", "other"]),
    container=st.sampled_from(["", "app", "app", "proxy"]),
    path=st.sampled_from(["", "a"]),
)
WEB_0: Final = (("pod", "web-0"), ("namespace", "shop"))
APP: Final = (*WEB_0, ("container", "app"))
PROXY: Final = (*WEB_0, ("container", "proxy"))
OF_WEB_0: Final = st.builds(Came, st.just(WEB_0), st.just("1"), LATE).map(lambda came: (came,))
SAMPLES: Final = st.lists(st.builds(Came, OF_PODS, VALUES, LATE), max_size=5).map(tuple)


def harness_with(samples: tuple[Came, ...]) -> tuple[Harness, Scripted, dict[str, PrometheusUnreachableError]]:
    """Return readings, and a dictionary; an error that is put into it makes all later queries fail."""
    down: dict[str, PrometheusUnreachableError] = {}
    prometheus = Scripted(lambda _query: Script(samples, failure=down.get("down")))
    return make_harness(prometheus, rules=RULEBOOK, objects=OBJECTS), prometheus, down


def of(samples: tuple[Came, ...], namespace: str, **labels: str) -> list[Came]:
    """Return the samples of an object or of a namespace; those without a namespace only if no others concern it."""
    timely = [came for came in samples if abs(came.seconds_late) <= MOST_SECONDS]
    own = [came for came in timely if {"namespace": namespace, **labels}.items() <= dict(came.labels).items()]
    return own or [
        came for came in timely if labels.items() <= dict(came.labels).items() and "namespace" not in dict(came.labels)
    ]


def number(came: Came) -> float:
    return math.nan if came.value == "histogram" else float(came.value)


def answered(harness: Harness, metric: str, namespace: str) -> Iterator[tuple[str, float, bool]]:
    """Yield each pod, its value, and whether the value stands in for no data; nothing if the answer is an error."""
    try:
        answer = harness.readings.objects(harness.pods(metric), namespace, ALL, EVERYTHING)
    except ReadingError:
        return
    for name, value in answer.values:
        yield name, value, STANDS_IN in answer.warnings


@settings(max_examples=30, deadline=None)
@given(samples=SAMPLES)
def test_the_value_of_a_pod_is_that_of_its_only_sample(samples: tuple[Came, ...]) -> None:
    harness, _, _ = harness_with(samples)
    for metric in ("raw", "highest", "filled"):
        # The first four are queried one by one, all five together.
        for namespace in (*NAMESPACES, *NAMESPACES):
            for name, value, stands_in in answered(harness, metric, namespace):
                own = of(samples, namespace, pod=name)
                if stands_in:
                    assert metric == "filled"
                    assert all(math.isnan(number(came)) and came.value != "histogram" for came in own)
                else:
                    assert [number(came) for came in own] == [value]
                    assert math.isfinite(value)


@settings(max_examples=30, deadline=None)
@given(samples=SAMPLES)
def test_rows_are_all_those_of_the_namespace_and_all_finite(samples: tuple[Came, ...]) -> None:
    harness, _, _ = harness_with(samples)
    for namespace in (*NAMESPACES, *NAMESPACES):
        try:
            rows = harness.readings.external(harness.external("rows"), namespace, EVERYTHING).rows
        except ReadingError:
            continue
        assert all(row.labels.get("namespace", namespace) == namespace for row in rows)
        assert all(math.isfinite(row.value) for row in rows)
        if rows:
            # A sum of some of them would be too low.
            own = {tuple(sorted(came.labels)) for came in of(samples, namespace)}
            assert own <= {tuple(sorted(row.labels.items())) for row in rows}


@settings(max_examples=30, deadline=None)
@example(cpu=(Came(APP, "1"),), memory=(Came(APP, "2"), Came(PROXY, "3")))
@example(cpu=(Came(APP, "1"), Came(PROXY, "NaN")), memory=(Came(APP, "2"), Came(PROXY, "3")))
@given(cpu=SAMPLES, memory=SAMPLES)
def test_usage_of_a_container_is_that_of_its_only_sample(cpu: tuple[Came, ...], memory: tuple[Came, ...]) -> None:
    came = {"cpu": cpu, "memory": memory}
    prometheus = Scripted(lambda query: Script(came["cpu" if "cpu" in query else "memory"]))
    harness = make_harness(prometheus, rules=RULEBOOK, objects=OBJECTS)
    for namespace in (None, *NAMESPACES):
        try:
            items = harness.readings.usage(PODS, namespace, ALL).items
        except ReadingError:
            continue
        for item in items:
            assert item.namespace is not None
            assert item.used
            for container, used in item.used.items():
                assert "cpu" in used, "a client would read 0"
                for resource, value in used.items():
                    own = of(
                        came[resource], item.namespace, pod=item.name, **({"container": container} if container else {})
                    )
                    if not container:
                        own = [one for one in own if "container" not in dict(one.labels)]
                    assert [number(one) for one in own] == [value]
                    assert 0 <= value < math.inf


@settings(max_examples=30, deadline=None)
@example(samples=(Came(WEB_0, "1", 30.0),), waited=45)
@given(samples=OF_WEB_0, waited=st.integers(0, 2 * MOST_SECONDS))
def test_no_value_is_older_than_allowed_during_an_outage(samples: tuple[Came, ...], waited: int) -> None:
    harness, _, down = harness_with(samples)
    first = {name: value for name, value, _ in answered(harness, "raw", "shop")}
    down["down"] = PrometheusUnreachableError("q", "connection refused")
    harness.pass_time(waited, step=5.0)
    for name, value, _ in answered(harness, "raw", "shop"):
        assert first[name] == value
        (own,) = of(samples, "shop", pod=name)
        assert waited + max(0.0, own.seconds_late) <= MOST_SECONDS
