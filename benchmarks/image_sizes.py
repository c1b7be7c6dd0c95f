"""The size of the images' files, and how long their programs take to start: `python -m benchmarks.image_sizes`.

No image is built: the stages of the Dockerfile that make `/opt/tidewatch` are carried out in a folder, instruction by
instruction, with the packages of the locks. The sizes do not include the base image. A program is started `--starts`
times with `--version`; a row has an error for each start that failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.cluster_stage import CHECKOUT, temporary_folder
from benchmarks.options import command_line
from benchmarks.report import report
from benchmarks.running import run
from demo.machine.processes import ProcessFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "image_sizes"
_FOLDER: Final = "/opt/tidewatch"
_CONTEXT: Final = "/build"
_BUILD: Final = "wheel"
_TARGETS: Final = {
    "readiness": ("tidewatch-adapter", "readiness", "--version"),
    "adapter": ("tidewatch-adapter", "serve", "--version"),
    "nodes": ("tidewatch-adapter", "nodes", "--version"),
    "all": ("tidewatch-recommender", "run", "--version"),
}
"""The command that each target starts."""
_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--starts", type=int, default=5, help="how many starts make a row")
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.starts, progress))


def measure(starts: int, progress: Progress) -> Report:
    """Carry out the stages of each target. Raises ProcessFailedError if one of their commands fails."""
    rows = []
    with temporary_folder() as temporary:
        context = temporary / "context"
        shutil.copytree(CHECKOUT, context, ignore=shutil.ignore_patterns(".*", "dist", "tests", "__pycache__"))
        progress.say("the wheel")
        built = temporary / "built"
        perform(_BUILD, built, context)
        for target, command in _TARGETS.items():
            progress.say(target)
            # Each uses the same path, because scripts name the interpreter by the path of their installation.
            kept = temporary / "kept"
            shutil.copytree(built, kept, symlinks=True)
            perform(f"{target}-files", built, context)
            rows.append(row(target, command, built, starts))
            shutil.rmtree(built)
            kept.rename(built)
    return report(NAME, rows)


def perform(stage: str, folder: Path, context: Path) -> None:
    """Run the commands of a stage with a folder in place of `/opt/tidewatch`. Raises ProcessFailedError."""
    working = context
    for name, text in instructions_of(stage):
        here = text.replace(_FOLDER, str(folder)).replace(_CONTEXT, str(context)).replace("python3.11", _PYTHON)
        if name == "WORKDIR":
            working = Path(here)
            continue
        # The programs of the base image.
        shell = f'python() {{ "{sys.executable}" "$@"; }}; pip() {{ python -m pip "$@"; }}; set -e; {here}'
        done = subprocess.run(["/bin/sh", "-c", shell], cwd=working, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ProcessFailedError(f"stage {stage}: {here}: {done.stderr.strip()[-2000:]}")


def instructions_of(stage: str) -> list[tuple[str, str]]:
    """Return each RUN and WORKDIR of a stage of the Dockerfile, preceded by those of the stages that it builds on.

    The stage that makes the wheel is carried out once, so its instructions are left out of the stages that build on it.
    """
    text = re.sub(r"^\s*#.*\n", "", (CHECKOUT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.endswith(f" AS {stage}"))
    end = next((number for number, line in enumerate(lines) if number > begin and line.startswith("FROM")), len(lines))
    base = lines[begin].split()[1]
    below = [] if base.startswith("$") or base == _BUILD else instructions_of(base)
    own = [line.split(" ", 1) for line in lines[begin:end] if line.startswith(("RUN ", "WORKDIR "))]
    return below + [(name, text) for name, text in own]


def row(target: str, command: tuple[str, ...], folder: Path, starts: int) -> Row:
    """Return the size of a target's files, and the median time of its program's starts."""
    seconds, errors = [], 0
    for _ in range(starts):
        begin = time.monotonic()
        done = subprocess.run([folder / "bin" / command[0], *command[1:]], capture_output=True, check=False)
        seconds.append(time.monotonic() - begin)
        errors += done.returncode != 0
    bytes_ = sum(os.lstat(Path(where) / name).st_size for where, _, names in os.walk(folder) for name in names)
    return {
        "target": target,
        "files_mib": round(bytes_ / 2**20),
        "start_p50_ms": round(1000 * median(seconds)),
        "errors": errors,
    }


if __name__ == "__main__":
    sys.exit(main())
