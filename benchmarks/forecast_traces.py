"""The benefit of forecasts for recorded and for made-up load: `python -m benchmarks.forecast_traces --traces DIR`.

Every CSV file of the folder (`timestamp,value`), and every made-up trace, is replayed with each start-up time and the
defaults of the backtest command. A row is one replay. It has the shortage of `auto` (share of the time, missing share)
and of the rivals, relative to plain headroom at equal replica-hours (below 1 means less); its bill; and its regret: how
much worse it was than the single model that was best in hindsight, with all of them scaled to the replica-hours of
auto. A regret that misses its goal is split into parts (`regret_parts`).

The whole benchmark takes about 40 minutes on one core. With `--keep DIR`, it can be stopped and then continues where it
was: the folder holds each row, the forecasts of each model, and a page of plots for each trace. After a change of the
choice, remove the folder's `rows` and `plots`; after a change of a model, remove the whole folder. `--seed N` makes the
made-up loads with other random numbers. `--changing` replays other loads instead, whose past misleads a forecast:
growth by jumps and steps, cycles that stop and resume, and histories of less than two weeks.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.forecast_goals import REGRET_PARTS, as_goals
from benchmarks.forecast_replay import replayed
from benchmarks.kept_forecasts import KeptForecasts, SharedFits
from benchmarks.made_traces import CHANGING, MADE
from benchmarks.options import command_line
from benchmarks.recorded_traces import TraceMissingError, missing_message, recordings_in
from benchmarks.report import report
from benchmarks.running import run
from demo.machine.files import replace_file
from recommender.backtest.errors import BacktestError
from recommender.kinds.predictive.models.table import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from benchmarks.forecast_replay import Replayed
    from benchmarks.made_traces import MadeTrace
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from recommender.kinds.predictive.history import LoadHistory

NAME: Final = "forecast_traces"
TRACES: Final = Path(__file__).resolve().parents[2] / "shared" / "traces"
STARTUPS_SECONDS: Final = (60.0, 180.0, 600.0, 1800.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """The traces to replay, and how to replay them."""

    folder: Path
    traces: tuple[str, ...]
    """Names of the traces; empty for all."""
    startups_seconds: tuple[float, ...]
    models: tuple[str, ...]
    with_recorded: bool = True
    made: tuple[MadeTrace, ...] = MADE
    seeds: tuple[int, ...] = (0,)
    """Seeds of the made-up traces."""
    plots: Path | None = None
    parts: Path | None = None
    """The folder of kept rows; None to keep none."""
    forecasts: Path | None = None
    """The folder of kept forecasts; None to keep none."""

    def kept(self, name: str, startup_seconds: float) -> KeptForecasts | None:
        """Return the kept forecasts of a row; None if they are not kept."""
        return None if self.forecasts is None else KeptForecasts(self.forecasts, f"{name}-{startup_seconds:g}")

    def part(self, name: str, startup_seconds: float) -> Path | None:
        """Return the file of a row; None if rows are not kept."""
        return None if self.parts is None else self.parts / f"{name}-{startup_seconds:g}.json"

    def page(self, name: str) -> Path | None:
        """Return the file of a trace's page; None if no pages are drawn."""
        return None if self.plots is None else self.plots / f"{name}.png"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    names = [each.name for each in MODELS]
    parser = command_line(NAME, __doc__)
    parser.add_argument("--traces", type=Path, default=TRACES, help="the folder of the recorded traces")
    parser.add_argument("--trace", action="append", default=[], help="a trace by its name; default: all")
    parser.add_argument("--startup", action="append", type=float, default=[], help="seconds; default: 1, 3, 10, 30 min")
    parser.add_argument("--model", action="append", choices=names, default=[], help="default: all")
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--recorded-only", action="store_true", help="leave the made traces out")
    sets.add_argument("--changing", action="store_true", help="replay only made loads whose past misleads a forecast")
    parser.add_argument("--seed", action="append", type=int, default=[], help="of the made traces; default: 0")
    parser.add_argument(
        "--keep", type=Path, help="a folder for rows, forecasts and plots, from which a later run goes on"
    )
    parser.add_argument("--plots", type=Path, help="a folder for a page of each trace")
    parser.add_argument("--parts", type=Path, help="a folder for each row, from which a later run goes on")
    parser.add_argument("--forecasts", type=Path, help="a folder for forecasts, which later runs do not make again")
    given = parser.parse_args(arguments)
    settings = Settings(
        given.traces,
        tuple(given.trace),
        tuple(given.startup) or STARTUPS_SECONDS,
        tuple(given.model or names),
        not given.changing,
        CHANGING if given.changing else () if given.recorded_only else MADE,
        tuple(given.seed) or (0,),
        *(
            own or (None if given.keep is None else given.keep / name)
            for name, own in (("plots", given.plots), ("rows", given.parts), ("forecasts", given.forecasts))
        ),
    )
    expected = (TraceMissingError, BacktestError)
    return run(NAME, given.output, lambda progress: measured(settings, progress), expected, as_goals)


def measured(settings: Settings, progress: Progress) -> Report:
    """Replay the existing traces. Raises TraceMissingError, BacktestError."""
    rows: list[Row] = []
    for folder in (settings.plots, settings.parts, settings.forecasts):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    histories = _histories(settings, progress)
    left = _TimeLeft(len(histories) * len(settings.startups_seconds))
    for name, read in histories:
        page, pages, fits = settings.page(name), [], SharedFits()
        is_drawn = page is None or page.exists()
        history: LoadHistory | None = None
        for startup in settings.startups_seconds:
            part = settings.part(name, startup)
            if is_drawn and part is not None and part.exists():
                rows.append(json.loads(part.read_text()))
                left.had()
                continue
            history = history or read()
            progress.say(f"{left.said()}: {name}, start-up {startup:g} s, {history.steps:,} steps")
            began = time.process_time()
            found = replayed(history, startup, settings.models, fits, settings.kept(name, startup))
            rows.append(_row(name, startup, found, time.process_time() - began))
            pages.append(found)
            left.made()
            if part is not None:
                replace_file(part, json.dumps(rows[-1]))
        if page is not None and not is_drawn:
            from benchmarks.forecast_pages import write_page  # noqa: PLC0415 - matplotlib takes a second to load

            write_page(name, pages, page)
    return report(NAME, rows)


class _TimeLeft:
    """How many rows are done, and how long the others will take if they take as long as those of this run."""

    def __init__(self, rows: int) -> None:
        self._rows, self._done, self._made = rows, 0, 0
        self._began = time.monotonic()

    def had(self) -> None:
        """Count a row that an earlier run has made."""
        self._done += 1

    def made(self) -> None:
        """Count a row of this run."""
        self._done += 1
        self._made += 1

    def said(self) -> str:
        """Return which row comes next, and the remaining time once this run has made a row to estimate it from."""
        place = f"row {self._done + 1} of {self._rows}"
        if not self._made:
            return place
        seconds = (time.monotonic() - self._began) / self._made * (self._rows - self._done)
        return f"{place}, about {seconds / 60:.0f} min left"


def _repair(name: str, absent: str | None, found: Collection[str]) -> str:
    """Return what to do about a trace that is not among those found."""
    base, _, seed = name.partition("@")
    if base in found and seed:
        return f"add --seed {seed}"
    if any(base == each.name for each in CHANGING):
        return "add --changing" + (f" --seed {seed}" if seed else "")
    return absent or f"choose from {', '.join(found)}"


def _histories(settings: Settings, progress: Progress) -> list[tuple[str, Callable[[], LoadHistory]]]:
    """Return functions that read the loads, by the names of the loads. Raises TraceMissingError."""
    recordings = recordings_in(settings.folder) if settings.with_recorded else ()
    absent = missing_message(settings.folder) if settings.with_recorded else None
    found: dict[str, Callable[[], LoadHistory]] = {
        each.name: partial(each.read, settings.folder) for each in recordings
    }
    for seed in settings.seeds:
        found |= {each.name if seed == 0 else f"{each.name}@{seed}": partial(each.read, seed) for each in settings.made}
    for name in settings.traces:
        if name not in found:
            raise TraceMissingError(f"{name} is not one of the traces: {_repair(name, absent, found)}")
    if not found:
        raise TraceMissingError(absent or f"{settings.folder} holds no CSV file")
    if absent and not settings.traces:
        progress.say(absent)
    return [(name, read) for name, read in found.items() if not settings.traces or name in settings.traces]


def _row(name: str, startup: float, found: Replayed, cpu_seconds: float) -> Row:
    auto, parts = found.auto, found.regret_parts
    used = [model for model, counts in zip(found.in_use, found.judged, strict=True) if counts]
    return {
        "trace": name,
        "startup_seconds": startup,
        "auto_tau_under_versus_headroom": auto.tau_under_versus_headroom,
        "auto_theta_under_versus_headroom": auto.theta_under_versus_headroom,
        "auto_cost_as_headroom_ratio": auto.cost_as_headroom_ratio,
        "auto_cost_above_load_ratio": found.above_load_ratio,
        "auto_leads": max(sorted(set(used)), key=used.count),
        "best_model": found.regret.best,
        "best_model_shortage": found.regret.best_shortage,
        "regret": found.regret.regret,
        **{f"regret_{part}": None if parts is None else getattr(parts, part) for part in REGRET_PARTS},
        **{f"{rival}_shortage": shortage for rival, shortage in found.rivals.items()},
        "cpu_seconds": round(cpu_seconds, 1),
        "errors": 0,
    }


if __name__ == "__main__":
    sys.exit(main())
