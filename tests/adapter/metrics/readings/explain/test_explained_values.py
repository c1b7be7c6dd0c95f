"""Why objects and rows lack a value, as steps, and what an explanation must not show."""

from __future__ import annotations

import math

from adapter.metrics.readings.explain.values import names_in, steps_of_dropped_samples, steps_of_objects, steps_of_rows
from adapter.metrics.readings.samples.object_reading import Dropped, Evaluation, Fault, ObjectReading
from adapter.metrics.readings.samples.object_reading_builder import BEYOND_MILLI_UNITS
from adapter.metrics.rulebook.requests import Row

NOW = Evaluation(1000.0, 0.0)


def steps_of(
    reading: ObjectReading,
    *names: str,
    served: tuple[str, ...] = (),
    limit: float | None = None,
    others: bool = True,
) -> list[tuple[str, str]]:
    found = steps_of_objects(reading, "shop", names, served, limit_seconds=limit, name_others=others)
    return [(step.step, step.detail) for step in found]


def test_objects_without_a_value_are_grouped_by_reason() -> None:
    nan = Fault("its value is NaN (not a number)", is_nan=True)
    reading = ObjectReading(NOW, {"shop": {"a": 1.0}}, {"shop": {"b": nan, "c": nan}})

    assert steps_of(reading, "a", "b", "c", "d", served=("a",)) == [
        ("values", "b, c have no value: its value is NaN (not a number)"),
        ("values", "d has no sample"),
    ]


def test_only_the_first_of_many_objects_are_named() -> None:
    ((_, detail),) = steps_of(ObjectReading(NOW), *(f"web-{number}" for number in range(12)))

    assert detail.endswith("web-8, web-9 and 2 more have no sample")


def test_samples_that_are_too_old_are_shown_with_their_age() -> None:
    reading = ObjectReading(NOW, {"shop": {"a": 1.0, "b": 2.0, "c": 3.0}}, times={"shop": {"a": 990.0, "b": 870.0}})

    assert steps_of(reading, "a", "b", "c", served=("a",), limit=120) == [
        ("maxSampleAge", "the samples are older than the rule allows (120 s): b (130 s), c (no current sample)")
    ]


def test_objects_that_were_not_requested_are_named_only_if_permitted() -> None:
    reading = ObjectReading(NOW, {"shop": {"a": 1.0, "secret-0": 1.0}}, {"shop": {"secret-1": Fault("odd")}})
    named, counted = (steps_of(reading, "a", served=("a",), others=named) for named in (True, False))

    assert named == [("values", "secret-0, secret-1 have samples that were not requested")]
    assert counted == [("values", "2 other objects have samples that were not requested")]


def test_objects_of_other_namespaces_are_not_named() -> None:
    reading = ObjectReading(NOW, {"bank": {"secret-0": 1.0}}, {"bank": {"secret-1": Fault("odd")}})

    assert names_in(reading, "shop") == []
    assert steps_of(reading, "a") == [("values", "a has no sample")]
    (step,) = steps_of_dropped_samples({Dropped.FOREIGN_NAMESPACE: 3, Dropped.NAN: 1})
    assert step.detail.startswith("samples of other namespaces are left out")


def test_samples_of_containers_are_reported_by_pod() -> None:
    reading = ObjectReading(NOW, {"shop": {"a/app": 1.0, "a/proxy": 1.0}}, containers={"shop": {"a": "app/proxy"}})

    assert names_in(reading, "shop") == ["a"]


def test_rows_without_a_finite_value_are_shown() -> None:
    rows = [Row({"queue": "a"}, 1.0), Row({"queue": "b"}, math.nan), Row({"queue": "c"}, 1e16)]

    assert [step.detail for step in steps_of_rows(rows, "late")] == [
        '1 of 3 series has no finite value: {queue="b"}',
        f'1 of 3 series is too large, as {BEYOND_MILLI_UNITS}: {{queue="c"}}',
        "late",
    ]
