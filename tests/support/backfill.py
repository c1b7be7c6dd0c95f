"""Samples of the past for a Prometheus that has not started yet."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import program

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = "1458h"
"""The longest duration of a block, one that Prometheus itself uses.

With blocks of two hours, the default, samples of ten days would be read 120 times, which takes seconds of processor
time.
"""


def backfill(folder: Path, text: str) -> None:
    """Write samples, OpenMetrics text with timestamps and `# EOF`, into `folder/data` before the server starts."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    source = folder / "backfill.txt"
    source.write_text(text)
    make_blocks = [str(program("promtool")), "tsdb", "create-blocks-from", f"--max-block-duration={_BLOCK}"]
    command = [*make_blocks, "openmetrics", "--quiet", str(source), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise ProcessFailedError(f"promtool refused the samples: {done.stderr.strip() or done.stdout.strip()}")
    source.unlink()
