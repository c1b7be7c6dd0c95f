from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from adapter.foundation.files.digests import DIGEST_BYTES
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.samples import MachineRecord, SampleGrid, SampleSet
from adapter.nodes.state_file.sample_encoding import SampleFileError, decode_samples, encode_samples
from tests.adapter.nodes.state_file.grids import END, grid, samples

if TYPE_CHECKING:
    from adapter.nodes.model.arrays import Floats

MEANING = "queries of http://prometheus"
SMALL = b"".join(encode_samples(samples(grid(LoadResource.CPU, ("a", "b")), grid(LoadResource.GPU, ("b",))), MEANING))
TIMES = st.one_of(st.just(float("nan")), st.floats(0, 4e9))


def times(size: int) -> st.SearchStrategy[Floats]:
    return arrays.arrays(np.float64, size, elements=TIMES)


@st.composite
def grids(draw: st.DrawFn, resource: LoadResource) -> SampleGrid:
    names = tuple(sorted(draw(st.sets(st.text(max_size=5), max_size=3))))
    step, columns, nodes = draw(st.integers(1, 120)), draw(st.integers(0, 6)), len(names)
    ratios = st.one_of(st.just(float("nan")), st.floats(0, 1.5, width=32))
    return SampleGrid(
        resource=resource,
        step_seconds=step,
        end=step * draw(st.integers(0, 10**8)),
        nodes=names,
        values=draw(arrays.arrays(np.float64, (nodes, columns), elements=ratios)),
        newest=draw(times(nodes)),
        scrape_seconds=draw(times(nodes)),
        advancing=draw(times(nodes)),
        reset_at=draw(times(nodes)),
    )


def assert_equal(found: SampleGrid, given: SampleGrid) -> None:
    assert (found.resource, found.step_seconds, found.end, found.nodes) == (
        given.resource,
        given.step_seconds,
        given.end,
        given.nodes,
    )
    for name in ("values", "newest", "scrape_seconds", "advancing", "reset_at"):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))


@settings(max_examples=25, deadline=None)
@given(st.tuples(grids(LoadResource.CPU), grids(LoadResource.DISK)))
def test_samples_are_read_as_they_were_written(both: tuple[SampleGrid, SampleGrid]) -> None:
    found = decode_samples(b"".join(encode_samples(samples(*both), MEANING)), MEANING)
    assert found.from_file
    assert list(found.grids) == [each.resource for each in both]
    for each in both:
        assert_equal(found.grids[each.resource], each)


def test_the_machines_are_read_as_they_were_written() -> None:
    machines = {"a": MachineRecord("EC2A", "aws:///i-1", "1", 1.5), "b": MachineRecord()}
    given = replace(samples(grid(LoadResource.CPU, ("a", "b"))), machines=machines)
    assert decode_samples(b"".join(encode_samples(given, MEANING)), MEANING).machines == machines


def test_a_file_of_a_version_that_wrote_no_machines_is_read() -> None:
    body = SMALL[:-DIGEST_BYTES]
    former = body.replace(b',"machines":{}', b"")
    assert former != body
    assert decode_samples(signed(former), MEANING).machines == {}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255))
def test_any_changed_byte_is_refused(position: int, change: int) -> None:
    content = bytearray(SMALL)
    content[position] ^= change
    with pytest.raises(SampleFileError, match="damaged"):
        decode_samples(bytes(content), MEANING)


def test_a_truncated_file_is_refused() -> None:
    for size in range(len(SMALL)):
        with pytest.raises(SampleFileError, match="damaged"):
            decode_samples(SMALL[:size], MEANING)


def signed(body: bytes) -> bytes:
    return body + hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b'{"format":"tidewatch-node-samples","version":2}\n', "it has version 2", id="version"),
        pytest.param(b"\x80\x04\x95cos\nsystem\n", "not a file of node samples", id="pickle"),
        pytest.param(b'{"format":"other","version":1}\n', "not a file of node samples", id="format"),
        pytest.param(b"", "not a file of node samples", id="nothing"),
        pytest.param(SMALL[:-DIGEST_BYTES] + b"x", "its size differs", id="longer"),
        pytest.param(SMALL[:-DIGEST_BYTES].replace(b'"node_list":1', b'"node_list":7'), "not listed", id="node-list"),
        pytest.param(SMALL[:-DIGEST_BYTES].replace(b'"columns":4', b'"columns":-4'), "not a file of", id="negative"),
    ],
)
def test_a_file_of_another_kind_is_refused_although_its_digest_matches(body: bytes, reason: str) -> None:
    with pytest.raises(SampleFileError, match=reason):
        decode_samples(signed(body), MEANING)


def test_samples_of_other_queries_are_refused() -> None:
    with pytest.raises(SampleFileError, match="other queries"):
        decode_samples(SMALL, "queries of http://another")


def test_float32_keeps_a_percentage_to_five_digits_after_the_point() -> None:
    given = grid(LoadResource.CPU, tuple(f"n{number:03}" for number in range(200)), columns=60)
    found = decode_samples(b"".join(encode_samples(samples(given), MEANING)), MEANING).grids[LoadResource.CPU]
    assert np.nanmax(np.abs(found.values - given.values)) * 100 < 1e-5


def test_values_that_are_not_ratios_are_stored_as_missing() -> None:
    given = grid(LoadResource.CPU, ("a",))
    values = np.array([[np.inf, -np.inf, 1e300, 0.5]])
    changed = SampleSet({LoadResource.CPU: _with_values(given, values)})
    found = decode_samples(b"".join(encode_samples(changed, MEANING)), MEANING).grids[LoadResource.CPU]
    np.testing.assert_array_equal(found.values, [[np.nan, np.nan, np.nan, 0.5]])


def test_arrays_of_a_read_file_are_read_only() -> None:
    found = decode_samples(SMALL, MEANING).grids[LoadResource.CPU]
    assert found.end == END
    with pytest.raises(ValueError, match="read-only"):
        found.values[0, 0] = 1.0


def _with_values(given: SampleGrid, values: Floats) -> SampleGrid:
    return SampleGrid(
        given.resource,
        given.step_seconds,
        given.end,
        given.nodes,
        values,
        given.newest,
        given.scrape_seconds,
        given.advancing,
        given.reset_at,
    )
