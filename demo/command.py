"""`make demo`: one compressed day on this machine. The exit status is 0 only if the HPA held the load."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from demo.day import FleetLostError, run_day
from demo.hpa_controller import NoMetricsError
from demo.interruption import Interruption
from demo.load import DAY_SECONDS
from demo.machine.files import raise_open_files_limit
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import PrometheusMissingError
from demo.settings import Settings

OUT = Path(__file__).resolve().parent / "out"
SHORTEST_DAY_SECONDS = 20.0


def main() -> int:
    """Run the demo; return the exit status."""
    options = _options()
    raise_open_files_limit()
    settings = Settings(seconds=options.seconds, seed=options.seed, hpa=not options.no_hpa, hold=options.hold)
    interruption = Interruption()
    interruption.install()
    folder = Path(tempfile.mkdtemp(prefix="tidewatch-demo-"))
    try:
        held = run_day(folder, options.out, settings, interruption)
    except KeyboardInterrupt:
        print("\ndemo: ended by Ctrl-C; no process is left running", file=sys.stderr)
        held = False
    except (ProcessFailedError, PrometheusMissingError, FleetLostError, NoMetricsError) as error:
        print(f"demo: {error}", file=sys.stderr)
        print(f"demo: its files are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--seconds",
        type=_day_seconds,
        default=os.environ.get("DEMO_SECONDS", f"{DAY_SECONDS:g}"),
        help=f"length of the compressed day in seconds (default {DAY_SECONDS:g}; environment DEMO_SECONDS)",
    )
    parser.add_argument("--seed", type=int, default=Settings().seed, help="seed of the day's noise")
    parser.add_argument("--no-hpa", action="store_true", help="run without the HPA loop, so that the load is not held")
    parser.add_argument(
        "--hold",
        action="store_true",
        default=os.environ.get("DEMO_HOLD", "") not in {"", "0"},
        help="keep everything running afterwards (environment DEMO_HOLD=1)",
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for summary.json and demo.png (default demo/out)")
    return parser.parse_args()


def _day_seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= SHORTEST_DAY_SECONDS:
        raise argparse.ArgumentTypeError(f"a day takes at least {SHORTEST_DAY_SECONDS:.0f} seconds, not {text}")
    return seconds
