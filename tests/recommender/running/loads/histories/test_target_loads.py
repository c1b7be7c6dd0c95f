"""Series of a query become loads of targets, or are listed as left out."""

from __future__ import annotations

import math

import pytest

from adapter.foundation.sources.prometheus.answers.decoding import Sample
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.predictive_settings import Connections, ForEach
from recommender.running.loads.histories.target_loads import LoadSeriesError, loads_of, pods_of

FOR_EACH = ForEach("namespace", "app", kind="StatefulSet", max_targets=2)


def sample(value: float, **labels: str) -> Sample:
    return Sample(labels, value, 0.0)


def target(name: str) -> TargetReference:
    return TargetReference("apps/v1", "StatefulSet", "shop", name)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_a_value_that_cannot_be_a_load_is_unknown(value: float) -> None:
    found = loads_of([sample(value)], None, "load")

    assert found.values == {}
    assert "is not a valid load" in found.unknown[None]


def test_a_load_without_targets_has_exactly_one_series() -> None:
    with pytest.raises(LoadSeriesError, match="load has 2 values"):
        loads_of([sample(1.0), sample(2.0)], None, "load")


def test_a_load_whose_series_are_gone_has_no_value() -> None:
    with pytest.raises(LoadSeriesError, match="load has no value at present: check that its series exist"):
        loads_of([], None, "load")


def test_series_of_one_target_are_never_merged() -> None:
    found = loads_of(
        [sample(1.0, namespace="shop", app="a"), sample(2.0, namespace="shop", app="a"),
         sample(3.0, namespace="shop", app="b")], FOR_EACH, "load",
    )  # fmt: skip

    assert found.values == {target("b"): 3.0}
    assert "2 series of load" in found.unknown[target("a")]
    assert "StatefulSet shop/a" in found.problems[0]


def test_a_series_without_the_labels_is_left_out_and_named() -> None:
    found = loads_of([sample(1.0, namespace="shop"), sample(2.0, app="b")], FOR_EACH, "load")

    assert (found.values, found.left_out) == ({}, 2)
    assert '{namespace="shop"}' in found.problems[0]


def test_the_first_targets_by_name_are_kept_if_there_are_too_many() -> None:
    found = loads_of([sample(1.0, namespace="shop", app=name) for name in "dcba"], FOR_EACH, "load")

    assert list(found.values) == [target("a"), target("b")]
    assert found.left_out == 2
    assert "4 targets, and forEach.max allows 2" in found.problems[0]
    assert "StatefulSet shop/c" in found.problems[0]


def test_new_series_of_another_namespace_do_not_evict_a_known_target() -> None:
    samples = [sample(1.0, namespace="aaa", app=f"x{each}") for each in range(5)]
    found = loads_of([*samples, sample(7.0, namespace="shop", app="web")], FOR_EACH, "load", {target("web")})

    assert found.values[target("web")] == 7.0
    assert len(found.values) == 2


def test_new_targets_of_a_small_namespace_have_room_beside_a_large_one() -> None:
    samples = [sample(1.0, namespace="aaa", app=f"x{each}") for each in range(5)]
    found = loads_of([*samples, sample(7.0, namespace="shop", app="web")], FOR_EACH, "load")

    assert found.values[target("web")] == 7.0
    assert len(found.values) == 2
    assert "namespace aaa has 5 of them" in found.problems[0]


def test_a_pod_is_ready_unless_it_has_reached_the_limit() -> None:
    connections = Connections(limit=10, metric="open")
    samples = [sample(value, pod=pod) for pod, value in (("b", 10.0), ("a", 9.0), ("c", math.nan))]
    found = pods_of(samples, connections, None)

    assert [(each.name, each.connections, each.is_ready) for each in found[None]] == [
        ("a", 9.0, True),
        ("b", 10.0, False),
        ("c", None, True),
    ]


@pytest.mark.parametrize(("pods", "message"), [(("a", "a"), "two series of pod a"), (("",), "without the label 'pod'")])
def test_each_pod_must_have_exactly_one_series(pods: tuple[str, ...], message: str) -> None:
    with pytest.raises(LoadSeriesError, match=message):
        pods_of([sample(1.0, pod=pod) for pod in pods], Connections(limit=10, metric="open"), None)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("shop", "web/../../../kube-system/deployments/coredns"),
        ("shop/deployments/web/scale?x=", "web"),
        ("..", "web"),
        ("shop", ".."),
        ("shop", "web?dryRun=All"),
        ("shop", "web#"),
        ("shop", "web\n"),
        ("shop", "Web"),
        ("shop", "w" * 254),
        ("s" * 64, "web"),
        ("shop ", "web"),
        ("sh\x00op", "web"),
        ("店", "web"),
    ],
)
def test_series_whose_labels_cannot_name_an_object_are_left_out(namespace: str, name: str) -> None:
    found = loads_of(
        [sample(1.0, namespace=namespace, app=name), sample(2.0, namespace="shop", app="web.v2")], FOR_EACH, "load"
    )

    assert found.values == {target("web.v2"): 2.0}
    assert found.left_out == 1
    assert "cannot be the name" in found.problems[0]
