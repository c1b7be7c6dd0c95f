from __future__ import annotations

import pytest

from adapter.apis.hints import Hints
from adapter.apis.slices import in_one_piece
from adapter.readings.catalogue import Catalogue
from tests.apis.fakes import KINDS, NAMESPACES, custom_metric, external_metric

CATALOGUE = Catalogue(
    [
        custom_metric("http_per_second", series="http_total"),
        custom_metric("http_per_second", NAMESPACES, series="http_total"),
        custom_metric("load"),
        external_metric("load"),
        *(custom_metric("everywhere", kind) for kind in KINDS),
    ],
    generation=1,
)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("load", "a metric of this name is served for pods (inside of namespaces) and as external metric"),
        (
            "http_total",
            (
                "the series of this name is served as the metric http_per_second, "
                "for namespaces (outside of namespaces) and for pods (inside of namespaces)"
            ),
        ),
        ("none", "no rule gives a metric of this name, or none of its series is in Prometheus"),
    ],
)
def test_where_it_is_instead(name: str, hint: str) -> None:
    assert Hints(CATALOGUE).for_missing(name) == hint


def test_a_metric_that_is_in_many_places_names_some_of_them() -> None:
    hint = Hints(CATALOGUE).for_missing("everywhere")
    assert hint.count("for ") == 5
    assert hint.endswith(" (outside of namespaces) and 2 more")


def test_before_any_metric_is_known_that_is_said() -> None:
    assert Hints(Catalogue()).for_missing("load").startswith("no metric is known yet")


def test_hints_are_of_the_catalogue_that_was_prepared_last() -> None:
    hints = Hints(Catalogue())
    hints.prepare(CATALOGUE, in_one_piece)
    assert "as external metric" in hints.for_missing("load")
    hints.prepare(Catalogue(generation=2), in_one_piece)
    assert "no metric is known" in hints.for_missing("load")
