"""The catalogue is the same whatever slices it is built in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.time.pace import Pace
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.rulebook.model import Metric
from adapter.metrics.rulebook.provided_metrics import static_metrics
from tests.support.readings import MadeUpObjects, rulebook_of

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Rule

RULE: Rule = rulebook_of().rules[0]
KINDS = [None, *(find_resource(BUILT_IN, "", name) for name in ("pods", "services", "nodes", "deployments"))]
METRICS = st.lists(
    st.builds(
        lambda kind, name, series: Metric(RULE, name, series, kind, kind and kind.singular, "namespace"),
        st.sampled_from(KINDS),
        st.text("ab", max_size=4),
        st.text("xy", max_size=2),
    ),
    max_size=40,
)


class Ticking:
    """A clock that advances whenever it is read, so that every slice holds few items."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses = 0

    def clock(self) -> float:
        self.now += 0.0002
        return self.now

    def sleep(self, _seconds: float) -> None:
        self.pauses += 1


@given(METRICS)
def test_metrics_are_sorted_and_the_last_one_of_a_name_wins(metrics: list[Metric]) -> None:
    time = Ticking()
    catalogue = Catalogue(metrics, 7, Pace(0.004, time.sleep, time.clock))
    custom = {(m.resource.qualified, m.namespaced, m.name): m for m in metrics if m.resource is not None}
    external = {m.name: m for m in metrics if m.resource is None}
    assert catalogue.custom == tuple(custom[key] for key in sorted(custom))
    assert catalogue.external == tuple(external[name] for name in sorted(external))
    assert all(catalogue.find_custom(kind, scope, name) is m for (kind, scope, name), m in custom.items())
    assert all(catalogue.find_external(name) is m for name, m in external.items())
    assert catalogue.generation == 7
    assert time.pauses >= len(metrics) // 3


def test_thousands_of_metrics_are_sorted_in_runs() -> None:
    kind = find_resource(BUILT_IN, "", "pods")
    metrics = [Metric(RULE, f"m{number * 7919 % 3001}", "s", kind, "pod", "namespace") for number in range(3001)]
    time = Ticking()
    catalogue = Catalogue(metrics, 0, Pace(0.004, time.sleep, time.clock))
    assert [metric.name for metric in catalogue.custom] == sorted(metric.name for metric in metrics)
    assert time.pauses > 1000


NARROWING = """
rules:
- seriesQuery: 'load{{{labels}}}'
  resources: {{overrides: {{{overrides}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""


def catalogue_of(overrides: str, labels: str) -> Catalogue:
    rule = rulebook_of(NARROWING.format(overrides=overrides, labels=labels)).rules[0]
    return Catalogue(static_metrics(rule, MadeUpObjects().resource))


def test_metrics_of_cluster_scoped_objects_are_also_served_within_namespaces() -> None:
    catalogue = catalogue_of("ns: {resource: namespace}, class: {group: storage.k8s.io, resource: storageclass}", "")
    whole = catalogue.find_custom("storageclasses.storage.k8s.io", namespaced=False, name="load")
    within = catalogue.find_custom("storageclasses.storage.k8s.io", namespaced=True, name="load")
    assert whole is not None
    assert within is not None
    assert (whole.namespaced, whole.namespace_label) == (False, None)
    assert (within.namespaced, within.namespace_label, within.qualified) == (True, "ns", whole.qualified)
    # One and the same for all requests, and found again after a reload.
    assert catalogue.find_custom("storageclasses.storage.k8s.io", namespaced=True, name="load") is within
    assert (catalogue.current(within), catalogue.current(whole)) == (within, whole)
    assert within not in catalogue.custom


@pytest.mark.parametrize(
    ("overrides", "kind"),
    [
        ("class: {group: storage.k8s.io, resource: storageclass}", "storageclasses.storage.k8s.io"),
        ("ns: {resource: namespace}", "namespaces"),
        ("ns: {resource: namespace}", "nodes"),
    ],
    ids=["no label for namespaces", "a namespace itself", "nothing"],
)
def test_metrics_that_no_label_restricts_are_not_served_within_namespaces(overrides: str, kind: str) -> None:
    assert catalogue_of(overrides, "").find_custom(kind, namespaced=True, name="load") is None
