"""The demo itself runs the same processes as `make demo`; `make e2e` judges whole days (`tests/e2e/demo`)."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.support.demos import children_of, read_until, started


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    demo = started(tmp_path)
    printed = read_until(demo, "waiting until the recommender")
    children = children_of(demo.pid)
    assert len(children) >= 7, printed
    demo.send_signal(signal.SIGINT)
    printed += demo.communicate(timeout=60)[0]
    assert demo.returncode == 1
    assert "no process is left running" in printed
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()], printed
