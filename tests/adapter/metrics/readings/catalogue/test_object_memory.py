"""The series of MetricRule objects do not fill the memory, whatever their names and labels."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN
from adapter.metrics.readings.catalogue.object_catalogues import MOST_SERIES_METRICS
from tests.adapter.metrics.readings.catalogue.object_harness import Served
from tests.support.rule_objects import RATE, rule_object, spec_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def of_each_kind(names: Callable[[], Iterable[str]]) -> Served:
    """Return a harness with an object whose metrics all have one name, for these series with a label for each kind."""
    kinds = {f"label_{number}": kind for number, kind in enumerate(BUILT_IN) if kind.plural != "namespaces"}
    of_kind = {
        label: {"resource": kind.plural, **({"group": kind.group} if kind.group else {})}
        for label, kind in kinds.items()
    }
    metadata = {"namespace": "shop", **dict.fromkeys(kinds, "x")}
    served = Served(series=lambda _: [{"__name__": name, **metadata} for name in names()])
    served.put(rule_object(spec_with(RATE, seriesQuery='{label_1!=""}', resources={"overrides": of_kind})))
    return served


def metrics_in_memory(served: Served) -> int:
    """Return how many metrics are kept, also those that are not served."""
    cataloguer = served.harness.readings._rule_objects
    states = [state.discovered for states in cataloguer._states.values() for state in states.values()]
    return sum(len(state.found) for state in states if state is not None)


def test_series_that_describe_many_kinds_of_objects_do_not_fill_memory() -> None:
    names = [f"hits_{number}" for number in range(500)]
    few, many = of_each_kind(lambda: names[:10]), of_each_kind(lambda: names)
    assert few.reasons() == {"shop/web": "Served"}
    assert many.reasons() == {"shop/web": "TooManyMetrics"}
    assert metrics_in_memory(many) < 2 * MOST_SERIES_METRICS
    assert len(many.verdicts()["shop/web"].message) < 200


def test_series_whose_names_change_at_each_look_up_do_not_fill_memory() -> None:
    rounds = count()
    served = of_each_kind(lambda: [f"hits_{next(rounds)}" for _ in range(10)])
    for _ in range(9):
        served.harness.pass_time(61)
    assert next(rounds) >= 100
    assert metrics_in_memory(served) < 2 * MOST_SERIES_METRICS
    assert served.reasons() == {"shop/web": "Served"}
