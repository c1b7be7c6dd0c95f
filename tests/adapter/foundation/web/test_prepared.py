"""Equal large answers are written once, and no request gets the bytes of another answer."""

from __future__ import annotations

import functools
import gzip
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.web.prepared import FROM_ITEMS, PreparedBodies
from adapter.foundation.web.rendering import GZIP_FROM_BYTES


class Writer:
    def __init__(self) -> None:
        self.made = 0

    def write(self, text: str, times: int = 1) -> bytes:
        self.made += 1
        return text.encode() * times


def test_equal_consecutive_answers_are_written_once() -> None:
    bodies: PreparedBodies[str] = PreparedBodies()
    writer = Writer()
    for answer in ("a", "a", "b", "b", "a"):
        made = bodies.body("question", answer, FROM_ITEMS, functools.partial(writer.write, answer))
        assert made.plain == answer.encode()
    assert writer.made == 3


def test_small_answers_are_not_kept() -> None:
    bodies: PreparedBodies[str] = PreparedBodies()
    writer = Writer()
    for _ in range(2):
        bodies.body("question", "a", FROM_ITEMS - 1, lambda: writer.write("a"))
    assert (writer.made, bodies.held_bytes) == (2, 0)


def test_a_large_answer_is_compressed_once() -> None:
    bodies: PreparedBodies[str] = PreparedBodies()
    writer = Writer()
    found = [bodies.body("question", "a", FROM_ITEMS, lambda: writer.write("a", GZIP_FROM_BYTES + 1)) for _ in range(2)]
    assert found[0] is found[1]
    assert found[0].gzipped is not None
    assert gzip.decompress(found[0].gzipped) == found[0].plain


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 40)), max_size=40))
def test_each_request_gets_its_own_answer_and_memory_is_bounded(requests: list[tuple[int, int, int]]) -> None:
    limit = 3 * FROM_ITEMS * 128 + 60
    bodies: PreparedBodies[tuple[int, int]] = PreparedBodies(limit)
    for question, answer, length in requests:
        text = f"{question}/{answer}/{length}".encode() + b"x" * length
        made = bodies.body(question, (answer, length), FROM_ITEMS, functools.partial(bytes, text))
        assert made.plain == text
        assert 0 <= bodies.held_bytes <= limit


def test_a_request_for_another_answer_does_not_wait_for_one_being_written() -> None:
    bodies: PreparedBodies[str] = PreparedBodies()
    writer, begun, go_on = Writer(), threading.Event(), threading.Event()

    def slowly() -> bytes:
        begun.set()
        go_on.wait(20)
        return writer.write("a")

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(bodies.body, "question", "a", FROM_ITEMS, slowly)
        assert begun.wait(20)
        others = [pool.submit(bodies.body, "question", "b", FROM_ITEMS, lambda: writer.write("b")) for _ in range(2)]
        assert {one.result(20).plain for one in others} == {b"b"}
        go_on.set()
        assert first.result(20).plain == b"a"


def test_after_a_failure_the_next_request_writes_the_answer() -> None:
    bodies: PreparedBodies[str] = PreparedBodies()

    def fail() -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bodies.body("question", "a", FROM_ITEMS, fail)
    assert bodies.body("question", "a", FROM_ITEMS, lambda: b"a").plain == b"a"
