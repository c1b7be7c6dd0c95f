"""Recorded load from a file with rows `timestamp,value` in any order.

Files are read in pieces, so that ten million rows need no more memory than their times and values.
"""

from __future__ import annotations

import warnings
import zlib
from dataclasses import dataclass
from lzma import LZMAError
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from pandas.errors import EmptyDataError, ParserError, ParserWarning

from recommender.backtest.errors import BacktestError
from recommender.kinds.predictive.upper_bound import LARGEST_LOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.kinds.predictive.arrays import BoolArray, FloatArray

TIMESTAMP: Final = "timestamp"
VALUE: Final = "value"
_ROWS_AT_ONCE: Final = 500_000
_FIRST_DATA_LINE: Final = 2
_MILLISECONDS_FROM: Final = 1e11
"""Numbers from this one on are milliseconds since the Unix epoch; as seconds, they would mean the year 5138 or
later."""
_LATEST_SECONDS: Final = 253_402_300_800.0
"""The end of the year 9999, after which RFC 3339 has no timestamps."""
_UNKNOWN: Final = frozenset({"", "nan", "null", "none", "na", "n/a", "-"})
_OTHER_SEPARATORS: Final = (";", "\t", "|")
_SEPARATORS: Final = "separate fields by a comma and decimals by a point, and write no comma at the end of a row"
_EXAMPLE: Final = "2026-11-21T06:00:00Z"


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """Samples in order of time, one for each time."""

    source: str
    """Where the load comes from: the file, or the address and the query."""
    times: FloatArray
    """Seconds since the Unix epoch, strictly rising."""
    values: FloatArray
    """The load, never negative; NaN where it is unknown."""
    repeated: int = 0
    """Rows that share their time with another row."""
    is_sample: BoolArray | None = None
    """Whether there is a sample at each of the times, even one whose value is unknown; None if there always is."""


def read_trace(path: Path) -> RecordedLoad:
    """Return the samples of a CSV file with the columns `timestamp` and `value`.

    A time is RFC 3339, UTC if it has no offset, or a number: seconds or milliseconds since the Unix epoch. An empty
    value is unknown. Several rows with the same time count as their mean. Raises BacktestError.
    """
    pieces = list(_pieces(path))
    times = np.concatenate([piece[0] for piece in pieces]) if pieces else np.empty(0)
    values = np.concatenate([piece[1] for piece in pieces]) if pieces else np.empty(0)
    if not len(times):
        raise BacktestError(f"{path}:1: the file has no rows below its header: record some load first")
    return of_samples(str(path), times, values)


def of_samples(source: str, times: FloatArray, values: FloatArray) -> RecordedLoad:
    """Return the samples in order of time; several at the same time become the mean of their known values."""
    if np.all(np.diff(times) > 0):
        return RecordedLoad(source, times, values)
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    first = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    known = ~np.isnan(values)
    totals = np.add.reduceat(np.where(known, values, 0.0), first)
    counts = np.add.reduceat(known.astype(np.float64), first)
    means = np.divide(totals, counts, out=np.full(len(first), np.nan), where=counts > 0)
    return RecordedLoad(source, times[first], means, len(times) - len(first))


def _pieces(path: Path) -> Iterator[tuple[FloatArray, FloatArray]]:
    try:
        frames = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            chunksize=_ROWS_AT_ONCE,
            encoding="utf-8-sig",
            skipinitialspace=True,
            index_col=False,
        )
        line = _FIRST_DATA_LINE
        with warnings.catch_warnings(), frames:
            # pandas drops the surplus fields of rows that are longer than the header.
            warnings.simplefilter("error", ParserWarning)
            for frame in frames:
                frame.columns = [str(name).strip().lower() for name in frame.columns]
                _require_columns(path, frame)
                yield _piece(path, frame, line)
                line += len(frame)
    except FileNotFoundError as error:
        raise BacktestError(f"{path}: there is no such file: name a CSV file with timestamp,value") from error
    except OSError as error:
        problem = f"{path}: the file cannot be read: {error.strerror or error}: name a CSV file with timestamp,value"
        raise BacktestError(problem) from error
    except EmptyDataError as error:
        raise BacktestError(f"{path}:1: the file is empty: begin it with the header timestamp,value") from error
    except ParserWarning as error:
        raise BacktestError(f"{path}:{line}: the rows have more fields than the header: {_SEPARATORS}") from error
    except UnicodeDecodeError as error:
        raise BacktestError(f"{path}: the file is not UTF-8 text: save it as CSV in UTF-8") from error
    except ParserError as error:
        found = str(error).rsplit("C error: ", maxsplit=1)[-1].strip()
        raise BacktestError(f"{path}: the file is not CSV: {found}: write two columns, timestamp,value") from error
    except (BadZipFile, EOFError, ImportError, LZMAError, ValueError, zlib.error) as error:
        # pandas decompresses a file with the name of a compressed one.
        raise BacktestError(f"{path}: the file cannot be decompressed: {error}: name a plain CSV file") from error


def _require_columns(path: Path, frame: pd.DataFrame) -> None:
    names = ", ".join(frame.columns[:6])
    separator = next((each for each in _OTHER_SEPARATORS if each in names), None)
    if separator is not None and TIMESTAMP not in frame.columns:
        raise BacktestError(f"{path}:1: the fields are separated by {separator!r}: {_SEPARATORS}")
    for name in (TIMESTAMP, VALUE):
        # pandas numbers the second one of two columns with the same name.
        if name not in frame.columns or f"{name}.1" in frame.columns:
            what = "there are two columns" if name in frame.columns else "there is no column"
            raise BacktestError(f"{path}:1: {what} {name!r} (found: {names}): write the header timestamp,value")


def _piece(path: Path, frame: pd.DataFrame, line: int) -> tuple[FloatArray, FloatArray]:
    """Return the times and values of some rows; `line` is the line number of the first row."""
    stamps, texts = frame[TIMESTAMP].fillna("").str.strip(), frame[VALUE].fillna("").str.strip()
    blank = ((stamps == "") & (texts == "")).to_numpy(dtype=bool)
    times = _times(stamps)
    _refuse(
        path,
        line,
        np.isnan(times) & ~blank,
        lambda row: _no_time(stamps.iloc[row]),
    )
    values = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64, copy=True)
    unread = np.isnan(values) & ~texts.str.lower().isin(_UNKNOWN).to_numpy(dtype=bool)
    _refuse(
        path,
        line,
        unread | np.isinf(values),
        lambda row: f"{texts.iloc[row]!r} is not a number: write one, or leave the value empty where it is unknown",
    )
    _refuse(
        path,
        line,
        values < 0,
        lambda row: f"the value {texts.iloc[row]} is negative: load is 0 or more, so record requests or connections",
    )
    _refuse(
        path,
        line,
        values > LARGEST_LOAD,
        lambda row: (
            f"the value {texts.iloc[row]} is larger than any load ({LARGEST_LOAD:.2g}): "
            "correct it, or leave the value empty where it is unknown"
        ),
    )
    return times[~blank], values[~blank]


def _no_time(text: str) -> str:
    """Return what is wrong with a text that should be a time, and what to do."""
    fix = _SEPARATORS if any(each in text for each in _OTHER_SEPARATORS) else f"write RFC 3339, such as {_EXAMPLE}"
    return f"{text!r} is not a time: {fix}"


def _refuse(path: Path, line: int, wrong: BoolArray, problem: Callable[[int], str]) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BacktestError(f"{path}:{line + row}: {problem(row)}")


def _times(stamps: pd.Series) -> FloatArray:
    """Return Unix seconds; NaN for anything that is not a time."""
    numbers = pd.to_numeric(stamps, errors="coerce").to_numpy(dtype=np.float64, copy=True)
    if np.isnan(numbers).all():
        moments = pd.to_datetime(stamps, format="ISO8601", utc=True, errors="coerce")
        micros = moments.dt.as_unit("us").astype("int64").to_numpy()
        found = np.where(moments.isna().to_numpy(), np.nan, micros / 1e6)
    else:
        found = np.where(np.abs(numbers) >= _MILLISECONDS_FROM, numbers / 1000, numbers)
    return np.where(np.abs(found) < _LATEST_SECONDS, found, np.nan)
