"""Compressed data comes back the same; data that is damaged or too large is refused without taking much memory."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.files.gzip_format import (
    FAST,
    SMALL,
    GzipError,
    GzipWriter,
    compress,
    decompress,
    gunzipped_pieces,
    gzipped_text,
    text_bytes,
    text_of_pieces,
)

MOST = 10_000


@given(pieces=st.lists(st.binary(max_size=300), max_size=6), level=st.sampled_from([FAST, SMALL]))
def test_compressed_data_decompresses_to_the_same_bytes(pieces: list[bytes], level: int) -> None:
    whole, writer = b"".join(pieces), GzipWriter()
    for piece in pieces:
        writer.add(piece)
    for member in (compress(whole, level), writer.end()):
        assert gzip.decompress(member) == whole
        assert decompress(member, MOST) == whole
        assert b"".join(gunzipped_pieces([member[:7], b"", member[7:], b"more"], 5)) == whole


@given(pieces=st.lists(st.tuples(st.binary(max_size=300), st.booleans()), max_size=6))
def test_a_text_of_packed_and_plain_pieces_is_joined(pieces: list[tuple[bytes, bool]]) -> None:
    text = [gzipped_text(piece) if is_packed else piece for piece, is_packed in pieces]
    whole = b"".join(piece for piece, _ in pieces)
    assert text_of_pieces(text) == whole
    assert text_bytes(text) == len(whole)


@given(content=st.binary(min_size=1, max_size=300), cut=st.integers(min_value=1, max_value=300))
def test_truncated_data_is_refused(content: bytes, cut: int) -> None:
    member = compress(content)
    with pytest.raises(GzipError, match="it is cut off"):
        decompress(member[: -min(cut, len(member))], MOST)


@pytest.mark.parametrize("damaged", [b"no gzip at all", compress(b"abc")[:-8] + bytes(8)])
def test_damaged_data_is_refused(damaged: bytes) -> None:
    with pytest.raises(GzipError, match="it cannot be decompressed"):
        decompress(damaged, MOST)


@pytest.mark.parametrize(("size", "fits"), [(MOST, True), (MOST + 1, False), (100 * MOST, False)])
def test_too_large_data_is_refused_and_data_at_the_limit_is_not(size: int, *, fits: bool) -> None:
    member = compress(bytes(size))
    if fits:
        assert decompress(member, MOST) == bytes(size)
    else:
        with pytest.raises(GzipError, match="it is too large"):
            decompress(member, MOST)


def test_no_piece_is_larger_than_allowed() -> None:
    assert {len(piece) for piece in gunzipped_pieces([compress(bytes(1_000_000))], 1000)} <= {0, 1000}
