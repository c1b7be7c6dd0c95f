from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from adapter.foundation.sources.kubernetes.watches.streams import LONGEST_LINE_BYTES, lines_of


@given(st.lists(st.text(alphabet="ab\n", max_size=6).map(str.encode)))
def test_lines_do_not_depend_on_how_the_text_is_split(pieces: list[bytes]) -> None:
    *whole, _ = b"".join(pieces).split(b"\n")
    assert [line for lines in lines_of(iter(pieces)) for line in lines] == [line for line in whole if line]


@pytest.mark.timeout(60)
def test_a_long_line_is_joined_once() -> None:
    pieces = [b"x" * 50] * 300_000
    assert sum(len(line) for lines in lines_of(iter([*pieces, b"\n"])) for line in lines) == 15_000_000


@pytest.mark.parametrize("begun", [b"", b"a\nb\n"], ids=["first", "later"])
def test_an_endless_line_is_an_error(begun: bytes) -> None:
    read = 0

    def endless() -> object:
        nonlocal read
        yield begun
        while True:
            read += 1 << 16
            yield b"x" * (1 << 16)

    with pytest.raises(UnexpectedResponseError, match="one event of a watch has more than 16,777,216 bytes"):
        list(lines_of(endless()))  # type: ignore[arg-type]  # it never ends
    assert read == LONGEST_LINE_BYTES + (1 << 16)
