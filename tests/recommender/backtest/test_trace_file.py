from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recommender.backtest.errors import BacktestError
from recommender.backtest.recorded import trace_file as module
from recommender.backtest.recorded.trace_file import of_samples, read_trace

if TYPE_CHECKING:
    from pathlib import Path

AT = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "load.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "times", "values"),
    [
        ("timestamp,value\n2026-01-01T00:00:00Z,1.5\n2026-01-01T00:01:00Z,2\n", [0, 60], [1.5, 2]),
        ("timestamp,value\n2026-01-01T01:00:00+01:00,1\n2026-01-01 00:01:00,2\n", [0, 60], [1, 2]),
        ("timestamp,value\n2026-01-01T00:01:00Z,2\n2026-01-01T00:00:00Z,1\n", [0, 60], [1, 2]),
        ("timestamp,value\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:00Z,4\n", [0], [2.5]),
        ("timestamp,value\n2026-01-01T00:00:00Z,\n2026-01-01T00:00:00Z,4\n", [0], [4]),
        ("timestamp,value\n2026-01-01T00:00:00Z,NaN\n2026-01-01T00:01:00Z,\n", [0, 60], [math.nan, math.nan]),
        ("\ufeffTimestamp, Value ,pod\n2026-01-01T00:00:00Z, 7 ,a\n\n", [0], [7]),
        ("value,timestamp\r\n7,2026-01-01T00:00:00.25Z\r\n", [0.25], [7]),
        (f"timestamp,value\n{AT:.0f},1\n{AT + 60:.0f},2\n", [0, 60], [1, 2]),
        (f"timestamp,value\n{1000 * AT:.0f},1\n{1000 * AT + 500:.0f},2\n", [0, 0.5], [1, 2]),
        ('timestamp,value\n"2026-01-01T00:00:00Z","1e3"\n', [0], [1000]),
    ],
)
def test_a_file_is_read_in_the_order_of_time(
    tmp_path: Path, text: str, times: list[float], values: list[float]
) -> None:
    found = read_trace(written(tmp_path, text))
    assert (found.times - AT).tolist() == times
    np.testing.assert_array_equal(found.values, values)


HEAD = "timestamp,value\n2026-01-01T00:00:00Z,1\n\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", ":1", "the file is empty"),
        ("timestamp,value\n", ":1", "no rows"),
        ("time,value\n1,2\n", ":1", r"no column 'timestamp' \(found: time, value\)"),
        ("timestamp,value,value\n1,2,3\n", ":1", "two columns 'value'"),
        (HEAD + "2026-01-01T00:01:00Z,-1\n", ":4", "the value -1 is negative"),
        (HEAD + "2026-01-01T00:01:00Z,1e308\n", ":4", r"the value 1e308 is larger than any load \(3.4e\+38\)"),
        (HEAD + "2026-01-01T00:01:00Z,-inf\n", ":4", "'-inf' is not a number"),
        (HEAD + "2026-01-01T00:01:00Z,Inf\n", ":4", "'Inf' is not a number"),
        (HEAD + "2026-01-01T00:01:00Z,12 req\n", ":4", "'12 req' is not a number"),
        (HEAD + "2026-13-01T00:01:00Z,1\n", ":4", "'2026-13-01T00:01:00Z' is not a time: write RFC 3339"),
        (HEAD + "2026-01-01T00:01:00 CET,1\n", ":4", "is not a time"),
        (HEAD + ",5\n", ":4", "'' is not a time"),
        (HEAD + "99999-01-01T00:00:00Z,1\n", ":4", "is not a time"),
        ("timestamp,value\n1e300,1\n", ":2", "'1e300' is not a time"),
        ("timestamp;value\n1;2\n", ":1", "the fields are separated by ';': separate fields by a comma"),
        ("timestamp;value\n1;2,5\n", ":1|:2", "separate fields by a comma and decimals by a point"),
        ("timestamp\tvalue\n1\t2\n", ":1", "the fields are separated by"),
        ("timestamp,value\n1767225600;2\n", ":2", "'1767225600;2' is not a time: separate fields by a comma"),
        ("timestamp,value\n1767225600,2,5\n1767225660,2,6\n", ":2", "the rows have more fields than the header"),
        (HEAD + "2026-01-01T00:01:00Z,1,5\n", "", "is not CSV: Expected 2 fields in line 4, saw 3"),
        (b"timestamp,value\n\xff\xfe,1\n", "", "not UTF-8"),
        ('timestamp,value\n"2026,1\n', "", "is not CSV|is not a time"),
    ],
)
def test_an_invalid_file_is_refused_with_the_line(tmp_path: Path, text: str | bytes, line: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BacktestError, match=message) as error:
        read_trace(path)
    assert str(error.value).startswith(tuple(f"{path}{each}: " for each in line.split("|")))
    assert "\n" not in str(error.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BacktestError, match="there is no such file"):
        read_trace(tmp_path / "nothing.csv")
    with pytest.raises(BacktestError, match="cannot be read"):
        read_trace(tmp_path)


def test_line_numbers_are_counted_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 10)
    rows = [f"{AT + 60 * at:.0f},{at}" for at in range(35)]
    found = read_trace(written(tmp_path, "timestamp,value\n" + "\n".join(rows)))
    assert found.values.tolist() == list(range(35))
    rows[31] = f"{AT:.0f},x"
    with pytest.raises(BacktestError, match=r"load\.csv:33: 'x' is not a number"):
        read_trace(written(tmp_path, "timestamp,value\n" + "\n".join(rows)))


@given(st.lists(st.tuples(st.integers(0, 12), st.one_of(st.just(math.nan), st.integers(0, 9).map(float))), min_size=1))
def test_samples_at_one_time_become_their_mean(samples: list[tuple[int, float]]) -> None:
    found = of_samples("x", np.array([float(at) for at, _ in samples]), np.array([value for _, value in samples]))
    assert found.times.tolist() == sorted({at for at, _ in samples})
    assert found.repeated == len(samples) - len(found.times)
    for at, value in zip(found.times, found.values, strict=True):
        known = [each for time, each in samples if time == at and not math.isnan(each)]
        assert math.isnan(value) if not known else value == pytest.approx(sum(known) / len(known))
