"""Recorded load of real systems, and where each recording is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.backtest.resampling import Missing, resampled
from recommender.backtest.trace import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.predictive.history import LoadHistory

ARCHIVE = "the Internet Traffic Archive, https://ita.ee.lbl.gov"
NAB = "the Numenta Anomaly Benchmark, https://github.com/numenta/NAB"


class TraceMissingError(Exception):
    """None of the traces is there."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of `timestamp,value`, and what it is replayed with."""

    name: str
    file: str
    origin: str
    startups_seconds: tuple[float, ...]
    step_seconds: float | None = None
    """None: the median step of the samples."""
    missing: Missing = Missing.GAP

    def read(self, folder: Path) -> LoadHistory:
        """Return the load on a regular grid. Raises BacktestError."""
        return resampled(read_trace(folder / self.file), self.step_seconds, self.missing)


RECORDINGS = (
    Recording("nasa", "nasa_http_july_1min.csv", ARCHIVE, (180.0, 600.0)),
    Recording("nasa-zero", "nasa_http_july_1min.csv", ARCHIVE, (180.0, 600.0), missing=Missing.ZERO),
    Recording("world-cup", "worldcup98_before_tournament_5min.csv", ARCHIVE, (300.0, 600.0)),
    Recording("nyc-taxi", "nyc_taxi_30min.csv", NAB, (1800.0, 3600.0)),
    Recording("elb", "elb_request_count_5min.csv", NAB, (300.0, 600.0)),
    Recording("road", "road_occupancy_irregular.csv", NAB, (300.0, 600.0)),
)


def missing_message(folder: Path, recordings: tuple[Recording, ...]) -> str | None:
    """Return which files are missing and where their originals are published; None if all are there."""
    absent = {each.file: each.origin for each in recordings if not (folder / each.file).is_file()}
    if not absent:
        return None
    listed = "; ".join(f"{file} (published by {origin})" for file, origin in absent.items())
    return f"missing in {folder}: {listed}; convert each to CSV with the columns timestamp,value, or name --traces DIR"
