"""The state file of the week: it reads what was written, and refuses everything else."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from adapter.foundation.files.digests import DIGEST_BYTES, with_digest
from adapter.nodes.model.week import QUARTER_SECONDS, QUARTERS, LoadWeek
from adapter.nodes.state_file.sample_encoding import SampleFileError
from adapter.nodes.state_file.week_encoding import decode_week, encode_week

MEANS = np.full((2, QUARTERS), np.nan, dtype=np.float16)
MEANS[:, -3:] = [[0.25, 0.5, 1.0], [0.0, 0.1, np.nan]]
WEEK = LoadWeek(1_888_889 * QUARTER_SECONDS, ("a", "b"), MEANS)
CONTENT = b"".join(encode_week(WEEK, "m"))


def with_head(**changes: object) -> bytes:
    line, _, rest = CONTENT[:-DIGEST_BYTES].partition(b"\n")
    head = {**msgspec.json.decode(line), **changes}
    return b"".join(with_digest([msgspec.json.encode(head) + b"\n", rest]))


def test_a_week_is_read_as_it_was_written() -> None:
    found = decode_week(CONTENT, "m")
    assert (found.end, found.nodes) == (WEEK.end, WEEK.nodes)
    np.testing.assert_array_equal(found.means, WEEK.means)
    assert decode_week(b"".join(encode_week(LoadWeek(), "m")), "m").nodes == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(CONTENT[:-1], "damaged or cut off", id="cut off"),
        pytest.param(b"", "damaged or cut off", id="empty"),
        pytest.param(CONTENT.replace(b'"a"', b'"c"'), "damaged or cut off", id="changed"),
        pytest.param(with_head(nodes=["a"]), "its size differs", id="another size"),
        pytest.param(with_head(end=7), "not a file of the week", id="on no quarter of an hour"),
        pytest.param(with_head(version=2), "not a file of the week", id="another version"),
        pytest.param(with_head(meaning="other"), "other queries or another Prometheus", id="another meaning"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(SampleFileError, match=problem):
        decode_week(content, "m")


def test_values_that_are_not_ratios_are_read_as_unknown() -> None:
    means = MEANS.copy()
    means[0, :4] = [40.0, -1.0, np.inf, 1.01]
    content = b"".join(encode_week(LoadWeek(WEEK.end, WEEK.nodes, means), "m"))
    assert np.isnan(decode_week(content, "m").means[0, :4]).all()
