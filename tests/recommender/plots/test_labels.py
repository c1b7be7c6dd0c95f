"""Labels of pictures never overlap, and a single outlier does not flatten a picture."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from recommender.plots.labels import PointLabel, label_beside, mark_cut_off
from recommender.plots.limits import usual_top
from tests.support.overlaps import outside, overlaps


@given(st.lists(st.tuples(st.floats(0.9, 1.0), st.floats(0.001, 100.0)), min_size=2, max_size=16))
def test_labels_of_overlapping_points_do_not_overlap(points: list[tuple[float, float]]) -> None:
    figure = Figure(figsize=(5, 4), dpi=100)
    axes = figure.add_subplot()
    axes.set_yscale("log")
    axes.set_ylim(0.001, 100)
    label_beside(axes, [PointLabel(f"policy {place}", x, y, "#000000") for place, (x, y) in enumerate(points)])
    ends = sorted((float(text.get_position()[1])) for text in axes.texts)
    height = 8 / 72 * 100 / axes.bbox.height
    assert all(after - before > 0.99 * height for before, after in itertools.pairwise(ends))


@pytest.mark.parametrize(
    ("values", "top"),
    [
        ([], 1.0),
        ([np.nan], 1.0),
        ([0.0, 0.0], 1.0),
        ([3.0, 7.0], 7.0),
        ([3.0] * 4 + [12.0], 12.0),
        ([3.0] * 4 + [100.0], 3.0),
        ([10.0] * 200 + [137.0], 20.0),
    ],
)
def test_an_axis_ends_at_twice_the_usual_largest_value(values: list[float], top: float) -> None:
    assert usual_top(values) == top


def test_values_that_are_cut_off_are_marked() -> None:
    axes = Figure().add_subplot()
    values = np.array([10.0, np.nan, 137.0])
    mark_cut_off(axes, np.arange(3.0), values, 200.0)
    assert not axes.texts
    mark_cut_off(axes, np.arange(3.0), values, 20.0)
    assert [each.get_text() for each in axes.texts] == ["▲ 137"]


def test_the_checks_detect_overlapping_and_cut_labels() -> None:
    figure = Figure(figsize=(4, 2), dpi=100)
    figure.text(0.5, 0.5, "one")
    figure.text(0.51, 0.52, "other")
    figure.text(0.9, 0.1, "much too long for this place")
    assert overlaps(figure) == [("one", "other")]
    assert outside(figure) == ["much too long for this place"]
