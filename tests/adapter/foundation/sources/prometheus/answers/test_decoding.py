"""Decoding in slices gives what decoding in one piece gives, whatever the form of the answer."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers import slicing
from adapter.foundation.sources.prometheus.answers.answer_elements import INSTANT_LIMITS, SERIES_LIMITS, AnswerLimits
from adapter.foundation.sources.prometheus.answers.decoding import InstantAnswer, Sample, SeriesAnswer, read_instant
from adapter.foundation.sources.prometheus.answers.slicing import SERIES, VECTOR, Cut, Shape, cut_compact, cut_walked
from adapter.foundation.sources.prometheus.errors import AnswerTooLargeError, UnexpectedAnswerError
from adapter.foundation.time.pace import UNPACED
from tests.support.answers import read_series

if TYPE_CHECKING:
    from collections.abc import Callable

COMPACT = (",", ":")
# What could be taken for structure: quotes, backslashes, brackets, and the very boundaries that are searched for.
TRAPS = st.sampled_from(
    ['},{"metric":', '},{"__name__":', '\\"},{\\"metric\\":', '"}]}', "}],", '{"', "\\", '"', "\n", "☃", "\u2028", ""]
)
TEXTS = st.one_of(TRAPS, st.lists(TRAPS, max_size=4).map("".join), st.text(max_size=12))
LABELS = st.dictionaries(st.one_of(st.sampled_from(["__name__", "metric", "value", "Zone"]), TEXTS), TEXTS, max_size=4)
NUMBERS = st.floats().map(lambda value: {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(str(value), repr(value)))
ELEMENTS = st.lists(
    st.builds(lambda labels, number: {"metric": labels, "value": (1.5, number)}, LABELS, NUMBERS),
    min_size=1,
    max_size=30,
)
SLICE_BYTES = st.integers(1, 400)


def vector(elements: list[Any], separators: tuple[str, str] = COMPACT, **envelope: object) -> bytearray:
    document = {"status": "success", "data": {"resultType": "vector", "result": elements}, **envelope}
    return bytearray(json.dumps(document, separators=separators, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def pieces(body: bytearray, cut: Cut, *path: str) -> list[Any]:
    """Decode the pieces and what is left in the envelope, by the standard library."""
    found = [element for start, end in cut.spans for element in json.loads(b"[" + bytes(body[start:end]) + b"]")]
    rest = json.loads(cut.envelope)
    for key in path:
        rest = rest[key]
    return [*found, *rest]


@given(ELEMENTS, SLICE_BYTES)
def test_compact_answers_are_cut_between_elements(elements: list[Any], slice_bytes: int) -> None:
    body = vector(elements, warnings=['},{"metric":'])
    cut = cut_compact(body, VECTOR, UNPACED, slice_bytes)
    if cut is None:
        assert len(elements) == 1
        return
    assert pieces(body, cut, "data", "result") == json.loads(body)["data"]["result"]
    assert json.loads(cut.envelope)["warnings"] == ['},{"metric":']


@given(st.lists(LABELS.map(lambda labels: {"__name__": "up", **labels}), min_size=1, max_size=30), SLICE_BYTES)
def test_compact_series_are_cut_between_elements(elements: list[Any], slice_bytes: int) -> None:
    body = bytearray(json.dumps({"status": "success", "data": elements}, separators=COMPACT).encode())
    cut = cut_compact(body, SERIES, UNPACED, slice_bytes)
    assert (cut is None) == (len(elements) == 1)
    if cut is not None:
        assert pieces(body, cut, "data") == elements


@given(
    ELEMENTS,
    SLICE_BYTES,
    st.sampled_from([COMPACT, (", ", ": "), (" ,\n", " :\t")]),
    st.sampled_from(["as it is", "reversed"]),
)
def test_walked_answers_are_cut_between_elements(
    elements: list[Any], slice_bytes: int, separators: tuple[str, str], order: str
) -> None:
    histogram = {"metric": {}, "histogram": [1, {"count": "1", "sum": "2", "buckets": [[0, "1", "2", "1"]]}]}
    elements = [histogram, *elements, histogram]
    data = {"resultType": "vector", "analysis": {"result": [{}]}, "result": elements, "stats": [[], {}]}
    document = {"status": "success", "warnings": ['{"data":[{'], "data": data, "trace": {"data": {"result": []}}}
    if order == "reversed":
        document = {key: document[key] for key in reversed(document)}
    body = bytearray(json.dumps(document, separators=separators).encode())
    cut = cut_walked(body, VECTOR, UNPACED, slice_bytes)
    assert cut is not None
    expected = json.loads(body)
    assert pieces(body, cut, "data", "result") == expected["data"]["result"]
    envelope = json.loads(cut.envelope)
    assert envelope["data"].pop("result") == []
    del expected["data"]["result"]
    assert envelope == expected


@given(LABELS.map(lambda labels: [labels] * 3), SLICE_BYTES)
def test_walked_series_are_cut_between_elements(elements: list[Any], slice_bytes: int) -> None:
    body = bytearray(json.dumps({"data": elements, "status": "success"}).encode())
    cut = cut_walked(body, SERIES, UNPACED, slice_bytes)
    assert cut is not None
    assert pieces(body, cut, "data") == elements


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"]]}}", b'{"data":{"result":{}}}', b'{"data":{"result":[', b'{"data"', b"\xff"]
)
@pytest.mark.parametrize("shape", [VECTOR, SERIES])
def test_a_document_without_the_array_is_not_cut(body: bytes, shape: Shape) -> None:
    assert cut_compact(bytearray(body), shape, UNPACED) is None
    assert cut_walked(bytearray(body), shape, UNPACED) is None


@pytest.mark.parametrize(
    "elements", ["x{}", "1,{}", ",{}", "{}x", "{},", "{}{}", "{},,{}", "{} x,{}", "\x00{}", "1", "null"]
)
def test_an_array_with_anything_but_elements_and_commas_is_not_cut(elements: str) -> None:
    document = '{"status": "success", "data": [%s]}'
    assert cut_walked(bytearray((document % elements).encode()), SERIES, UNPACED, 1) is None
    for right in ("", " ", "{}", " {} , {}\n"):
        assert cut_walked(bytearray((document % right).encode()), SERIES, UNPACED, 1) is not None


def test_a_compact_answer_with_one_very_long_element_is_walked_instead() -> None:
    long = "x" * (slicing.SLICE_BYTES * 20)
    elements = [{"metric": {"a": a}, "value": [1, "1"]} for a in ("1", long, "2", "3")]
    body = vector(elements)
    assert cut_compact(body, VECTOR, UNPACED) is None
    answer = read(body)
    assert [sample.labels for sample in samples(answer)] == [element["metric"] for element in elements]


def many(count: int) -> list[dict[str, Any]]:
    return [
        {
            "metric": {"__name__": "up", "label_app_kubernetes_io_managed_by": f"x{i}", "pod": f"pod-{i}"},
            "value": [7.5, str(i)],
        }
        for i in range(count)
    ]


def read(body: bytes | bytearray, limits: AnswerLimits = INSTANT_LIMITS) -> InstantAnswer:
    return read_instant("up", bytearray(body), evaluated_at=7.5, limits=limits, pace=UNPACED)


def samples(answer: InstantAnswer) -> list[Sample]:
    return [sample for batch in answer.batches(UNPACED) for sample in batch]


def series(answer: SeriesAnswer) -> list[dict[str, str]]:
    return [labels for batch in answer.batches(UNPACED) for labels in batch]


ARRANGEMENTS = {
    "prometheus": lambda result: vector(result, warnings=["w"], infos=["i"]),
    "victoriametrics": lambda result: bytearray(
        json.dumps(
            {"status": "success", "isPartial": False, "data": {"resultType": "vector", "result": result}, "stats": {}}
            | {"warnings": ["w"], "infos": ["i"]},
            separators=COMPACT,
        ).encode()
    ),
    "blanks": lambda result: vector(result, (", ", ": "), warnings=["w"], infos=["i"]),
    "value first": lambda result: vector(
        [dict(reversed(list(element.items()))) for element in result], warnings=["w"], infos=["i"]
    ),
    "warnings first": lambda result: bytearray(
        json.dumps(
            {"warnings": ["w"], "infos": ["i"], "data": {"result": result, "resultType": "vector"}, "status": "success"}
        ).encode()
    ),
    "analysis": lambda result: bytearray(
        json.dumps(
            {
                "status": "success",
                "data": {
                    "resultType": "vector",
                    "result": result,
                    "analysis": {"nodes": [{"metric": {}}, {"metric": {}}]},
                },
                "warnings": ["w"],
                "infos": ["i"],
            },
            separators=COMPACT,
        ).encode()
    ),
}


@pytest.mark.parametrize("count", [0, 1, 2, 5000])
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_the_answer_formats_of_all_backends_give_the_same_samples(arrangement: str, count: int) -> None:
    body = ARRANGEMENTS[arrangement](many(count))
    answer = read(body)
    assert (answer.kind, answer.warnings) == ("vector", ("w",))
    assert samples(answer) == [Sample(element["metric"], float(i), 7.5) for i, element in enumerate(many(count))]


def test_batches_can_be_iterated_over_again() -> None:
    answer = read(vector(many(1000)))
    assert samples(answer) == samples(answer)


def test_batches_are_of_about_two_hundred() -> None:
    sizes = [len(batch) for batch in read(vector(many(5000))).batches(UNPACED)]
    # All but the last, which is what was left over.
    assert all(150 < size < 400 for size in sizes[:-2])


def test_an_answer_that_says_it_is_partial_has_a_warning() -> None:
    assert read(vector(many(1), isPartial=True)).warnings == ("the answer is partial (isPartial)",)
    assert read(vector(many(1), isPartial=False, warnings=None)).warnings == ()


def test_native_histograms_are_skipped_and_counted() -> None:
    histogram = {"metric": {"a": "h"}, "histogram": [7.5, {"count": "1", "sum": "2"}]}
    both = [*many(1500), histogram, *many(1500), histogram]
    answer = read(vector(both))
    assert len(samples(answer)) == 3000
    assert answer.histograms_skipped == 2
    list(answer.batches(UNPACED))
    assert answer.histograms_skipped == 2


@pytest.mark.parametrize("count", [1, 5000])
def test_infinity_and_nan_are_read_in_slices_with_other_values(count: int) -> None:
    special = ["+Inf", "-Inf", "Inf", "NaN", "1e+06", "-0", "5e-324"]
    body = vector([*many(count), *({"metric": {}, "value": [7.5, text]} for text in special), *many(count)])
    values = [sample.value for sample in samples(read(body))][count : count + len(special)]
    assert values[:3] == [math.inf, -math.inf, math.inf]
    assert math.isnan(values[3])
    assert values[4:] == [1e6, 0.0, 5e-324]


@given(st.floats(allow_nan=False))
def test_values_keep_every_bit(value: float) -> None:
    (sample,) = samples(read(vector([{"metric": {}, "value": [1, repr(value)]}])))
    assert sample.value == value
    assert math.copysign(1, sample.value) == math.copysign(1, value)


def test_label_names_are_stored_once() -> None:
    labels = [sample.labels for sample in samples(read(vector(many(5000))))]
    for name in ("pod", "label_app_kubernetes_io_managed_by"):
        assert len({id(key) for each in labels for key in each if key == name}) == 1


def test_series_of_every_form_give_the_same_label_sets() -> None:
    label_sets = [element["metric"] for element in many(5000)]
    # Sorts before __name__: the boundary that is searched for is missing before it.
    label_sets[2000:2100] = [{"Zone": "a", **labels} for labels in label_sets[2000:2100]]
    for document in (
        {"status": "success", "data": label_sets, "warnings": ["w"]},
        {"status": "success", "isPartial": False, "data": label_sets, "warnings": ["w"]},
        {"warnings": ["w"], "data": label_sets, "status": "success"},
    ):
        for separators in (COMPACT, (", ", ": ")):
            body = bytearray(json.dumps(document, separators=separators).encode())
            answer = read_series("up", body, limits=SERIES_LIMITS)
            assert series(answer) == label_sets
            assert answer.warnings == ("w",)


@pytest.mark.parametrize(
    "body", [b'{"status":"success","data":null}', b'{"status":"success","data":[]}', b'{"status":"success"}']
)
def test_no_series_are_an_empty_answer(body: bytes) -> None:
    assert series(read_series("up", bytearray(body), limits=SERIES_LIMITS)) == []


@pytest.mark.parametrize("separators", [COMPACT, (", ", ": ")])
def test_more_samples_than_allowed_are_an_error(separators: tuple[str, str]) -> None:
    body = vector(many(3000), separators)
    assert len(samples(read(body, AnswerLimits(max_samples=3000)))) == 3000
    with pytest.raises(AnswerTooLargeError, match="more than 2,999 samples"):
        samples(read(body, AnswerLimits(max_samples=2999)))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "value": lambda body: body.replace(b'"1500"', b'"fifteen"'),
    "quote": lambda body: body.replace(b'"pod-1500"', b'"pod-1500'),
    "number": lambda body: body.replace(b'"pod-1500"', b"1500"),
    "bracket": lambda body: body.replace(b'"pod-1500"}', b'"pod-1500"]'),
    "object": lambda body: body.replace(b'"pod-1500"', b'"pod-1500","more":{"a":1}'),
    "encoding": lambda body: body.replace(b"pod-1500", b"pod-\xff"),
    "escape": lambda body: body.replace(b"pod-1500", b"pod-\\x"),
    "end": lambda body: body[:-200],
    "last byte": lambda body: body[:-1],
    "one byte more": lambda body: body + b"}",
}


@pytest.mark.parametrize("separators", [COMPACT, (", ", ": ")], ids=["compact", "blanks"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_answer_is_an_error(damage: str, separators: tuple[str, str]) -> None:
    body = DAMAGES[damage](bytes(vector(many(3000), separators)))
    with pytest.raises(UnexpectedAnswerError):
        samples(read(body))


@given(st.binary(max_size=60), st.integers(0, 200_000), st.integers(0, 40))
@example(noise=b"\x80", where=248, cut_out=20)
@example(noise=b"\x00", where=60, cut_out=0)
@example(noise=b"", where=42, cut_out=1)
def test_damage_anywhere_is_an_error_or_does_not_affect_other_samples(noise: bytes, where: int, cut_out: int) -> None:
    body = bytes(BIG)
    damaged = body[:where] + noise + body[where + cut_out :]
    try:
        found = samples(read(damaged))
    except UnexpectedAnswerError:
        return
    # Whatever came through is what a decoder of the whole document gives. (Bytes that are no text may stand in the name
    # of a field that nobody reads.)
    assert len(found) == len(msgspec.json.decode(damaged.decode(errors="replace"))["data"]["result"])


BIG = vector(many(1500))
