"""Recorded load of real systems, and where each recording is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.backtest.recorded.resampling import Missing, resample
from recommender.backtest.recorded.trace_file import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.kinds.predictive.history import LoadHistory

ARCHIVE = "the Internet Traffic Archive, https://ita.ee.lbl.gov"
NAB = "the Numenta Anomaly Benchmark, https://github.com/numenta/NAB"


class TraceMissingError(Exception):
    """No trace exists."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of `timestamp,value`, and how it is replayed."""

    name: str
    file: str
    origin: str = ""
    step_seconds: float | None = None
    """The step of the grid; None for the median step of the samples."""
    missing: Missing = Missing.GAP

    def read(self, folder: Path) -> LoadHistory:
        """Return the load on a regular grid. Raises BacktestError."""
        return resample(read_trace(folder / self.file), self.step_seconds, self.missing)


RECORDINGS = (
    Recording("nasa", "nasa_http_july_1min.csv", ARCHIVE),
    Recording("nasa-zero", "nasa_http_july_1min.csv", ARCHIVE, missing=Missing.ZERO),
    Recording("world-cup", "worldcup98_before_tournament_5min.csv", ARCHIVE),
    Recording("nyc-taxi", "nyc_taxi_30min.csv", NAB),
    Recording("elb", "elb_request_count_5min.csv", NAB),
    Recording("road", "road_occupancy_irregular.csv", NAB),
)


def recordings_in(folder: Path) -> tuple[Recording, ...]:
    """Return the recordings of a folder: the known ones by their names, and every other CSV file by its own."""
    files = sorted(each.name for each in folder.glob("*.csv")) if folder.is_dir() else []
    known = tuple(each for each in RECORDINGS if each.file in files)
    named = {each.file for each in known}
    others = (Recording(file.removesuffix(".csv"), file) for file in files if file not in named)
    return (*known, *others)


def missing_message(folder: Path) -> str | None:
    """Return which known files are missing and where their originals are published; None if none is missing."""
    absent = {each.file: each.origin for each in RECORDINGS if not (folder / each.file).is_file()}
    if not absent:
        return None
    listed = "; ".join(f"{file} (published by {origin})" for file, origin in absent.items())
    return f"missing in {folder}: {listed}; convert each to CSV with the columns timestamp,value, or name --traces DIR"
