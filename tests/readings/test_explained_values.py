"""Whose samples are whose value, and of which nothing may be told."""

from __future__ import annotations

import math

import pytest

from adapter.readings.explained_values import of_namespace, told_of_containers, told_of_objects
from adapter.sources.prometheus.decoding import Sample


def sample(value: float = 1.0, **labels: str) -> Sample:
    return Sample(labels, value, 0.0)


def test_nameless_samples_are_told_beside_those_that_have_a_name() -> None:
    told = told_of_objects("pod", [sample(pod="a"), sample(zone="x"), sample()], ["a"])

    assert told.values == (("a", 1.0),)
    assert "2 samples lack the label 'pod', which names their object, and are nobody's; they have zone" in [
        step.detail for step in told.steps
    ]


def test_the_labels_in_which_several_samples_differ_are_named() -> None:
    samples = [sample(pod="a", path="/x", code="200"), sample(pod="a", path="/y", code="200"), sample(pod="a")]
    told = told_of_objects("pod", samples, ["a"])

    assert told.values == ()
    assert told.cause.endswith("a has several samples: aggregate the labels in which they differ away (code, path)")


def test_objects_that_nobody_asked_about_are_named_only_where_they_may_be() -> None:
    samples = [sample(pod="a"), sample(pod="secret-0"), sample(pod="secret-1")]
    named, counted = (told_of_objects("pod", samples, ["a"], tell_strangers=tell) for tell in (True, False))

    assert "secret-0, secret-1 have samples that are not asked about" in [step.detail for step in named.steps]
    assert "2 other objects have samples that are not asked about" in [step.detail for step in counted.steps]
    assert "secret" not in str(counted)


@pytest.mark.parametrize(("label", "namespace"), [(None, "shop"), ("namespace", None)])
def test_where_nothing_restricts_to_a_namespace_all_samples_count(label: str | None, namespace: str | None) -> None:
    samples = [sample(namespace="shop"), sample(namespace="other")]
    assert of_namespace(samples, label, namespace) == (samples, [])


def test_samples_of_other_namespaces_are_counted_and_no_more() -> None:
    samples = [sample(namespace="shop", pod="a"), sample(namespace="other", pod="secret"), sample(pod="b")]
    own, (step,) = of_namespace(samples, "namespace", "shop")

    assert [one.labels["pod"] for one in own] == ["a", "b"]
    assert step.detail.startswith("1 samples of other namespaces are left out")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_value(value: float) -> None:
    assert told_of_objects("pod", [sample(value, pod="a")], ["a"]).values == ()


def test_a_negative_number_is_a_value_unless_it_cannot_be_one() -> None:
    samples = [sample(-1.0, node="a")]

    assert told_of_objects("node", samples, ["a"]).values == (("a", -1.0),)
    told = told_of_objects("node", samples, ["a"], lowest=0.0)
    assert (told.values, "NaN or infinite or negative" in told.cause) == ((), True)


def test_what_pods_use_is_told_by_container() -> None:
    samples = [
        sample(1.0, pod="a", container="app"),
        sample(2.0, pod="a", container="sidecar"),
        sample(3.0, pod="a"),
        sample(4.0, pod="gone", container="app"),
        sample(-5.0, pod="b", container="app"),
    ]
    told = told_of_containers("pod", "container", samples, ["a", "b", "c"])
    details = [step.detail for step in told.steps]

    assert told.values == (("a/app", 1.0), ("a/sidecar", 2.0))
    assert details[0] == "1 samples without the label 'container' are nobody's"
    assert "c has no sample" in details
    assert any(detail.startswith("b/app has a sample that is NaN or infinite or negative") for detail in details)
    assert "gone/app has samples that are not asked about" in details


def test_pods_whose_samples_name_no_container_have_no_value() -> None:
    told = told_of_containers("pod", "container", [sample(pod="a")], ["a"])

    assert (told.values, "lack the label 'container'" in told.cause) == ((), True)
