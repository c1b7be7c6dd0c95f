"""Lists of series are cut while they arrive: whatever the pieces, the same elements come out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.prometheus.answers import streaming
from adapter.foundation.sources.prometheus.answers.slicing import SERIES
from adapter.foundation.sources.prometheus.answers.streaming import StreamCutter, TooLongToCutError

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPACT = (",", ":")
TRAPS = st.sampled_from(['},{"', '},{"__name__":', '\\"},{\\"', '"}]}', "}],", '{"', "\\", '"', "☃", ""])
TEXTS = st.one_of(TRAPS, st.lists(TRAPS, max_size=4).map("".join), st.text(max_size=12))
LABEL_SETS = st.lists(
    st.dictionaries(st.one_of(st.sampled_from(["__name__", "Zone", "pod"]), TEXTS), TEXTS, max_size=4),
    min_size=1,
    max_size=30,
)


def document(label_sets: Iterable[dict[str, str]], separators: tuple[str, str] = COMPACT, **more: object) -> bytes:
    return json.dumps({"status": "success", "data": list(label_sets), **more}, separators=separators).encode()


def fed(cutter: StreamCutter, body: bytes, piece_bytes: int) -> list[Any]:
    """Feed the body in pieces; return the elements that were handed out in the course of it."""
    found: list[Any] = []
    for start in range(0, len(body), piece_bytes):
        cutter.feed(body[start : start + piece_bytes])
        while (run := cutter.run()) is not None:
            found += json.loads(run)
    return found


@given(LABEL_SETS, st.integers(1, 300), st.integers(1, 400), st.sampled_from([COMPACT, (", ", ": "), (" ,\n", " :\t")]))
def test_elements_are_neither_lost_nor_added(
    label_sets: list[dict[str, str]], piece_bytes: int, run_bytes: int, separators: tuple[str, str]
) -> None:
    body = document(label_sets, separators, warnings=['},{"__name__":', "w" * 300])
    cutter = StreamCutter(SERIES, run_bytes)
    found = fed(cutter, body, piece_bytes)
    rest = json.loads(cutter.rest())
    assert found + rest["data"] == label_sets
    assert (rest["status"], rest["warnings"]) == ("success", ['},{"__name__":', "w" * 300])


def test_a_long_answer_is_never_held_whole() -> None:
    one = b'{"__name__":"http_requests_total","Zone":"a","pod":"web-0"},'
    cutter = StreamCutter(SERIES)
    cutter.feed(b'{"status":"success","data":[')
    most = count = 0
    for _ in range(2000):
        cutter.feed(one * 100)
        while (run := cutter.run()) is not None:
            count += len(json.loads(run))
        most = max(most, cutter.held)
    cutter.feed(one[:-1] + b"]}")
    assert count + len(json.loads(cutter.rest())["data"]) == 200_001
    assert most < 64 * 1024


def test_label_sets_may_begin_with_any_label() -> None:
    body = document([{"Zone": "a", "__name__": f"m{number}"} for number in range(5000)])
    cutter = StreamCutter(SERIES)
    assert len(fed(cutter, body, 10_000)) > 4000


def test_a_document_in_another_format_is_held_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MOST_WHOLE_BYTES", 100_000)
    body = document([{"__name__": "m"}] * 8000, (", ", ": "))
    cutter = StreamCutter(SERIES)
    assert fed(cutter, body[:90_000], 1000) == []
    assert cutter.rest() == body[:90_000]
    with pytest.raises(TooLongToCutError, match="not written as Prometheus does"):
        fed(cutter, body[90_000:], 1000)


def test_a_document_that_only_begins_in_the_format_of_prometheus_is_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LONGEST_ELEMENT_BYTES", 50_000)
    body = b'{"status":"success","data":[' + b", ".join([b'{"__name__":"m"}'] * 10_000) + b"]}"
    cutter = StreamCutter(SERIES)
    assert fed(cutter, body, 1000) == []
    assert cutter.rest() == body


def test_a_series_with_a_huge_label_is_returned_whole() -> None:
    label_sets = [{"__name__": "m", "text": "x" * 600_000}, {"__name__": "n"}, {"__name__": "o" * 40_000}]
    cutter = StreamCutter(SERIES)
    found = fed(cutter, document(label_sets), 64 * 1024)
    assert found[0] == label_sets[0]
    assert found + json.loads(cutter.rest())["data"] == label_sets


def test_a_series_with_an_endless_label_is_an_error() -> None:
    cutter = StreamCutter(SERIES)
    assert fed(cutter, document([{"__name__": "m"}] * 5000)[:-2], 64 * 1024)
    with pytest.raises(TooLongToCutError, match="one series has more than 1,048,576 bytes of labels"):
        fed(cutter, b',{"__name__":"' + b"x" * 3_000_000, 64 * 1024)
