from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.service.server.worker_exits import SIGNALS, WorkerExits
from tests.support.waiting import until


def ended(command: str) -> subprocess.Popen[bytes]:
    """Return a process that has ended and has not been waited for."""
    process = subprocess.Popen(["sh", "-c", command])
    until(lambda: b") Z " in Path(f"/proc/{process.pid}/stat").read_bytes())
    return process


def counts(exits: WorkerExits) -> dict[str, float]:
    registry = CollectorRegistry()
    exits.expose(registry, "example")
    found = {name: registry.get_sample_value("example_worker_exits_total", {"signal": name}) for name in SIGNALS}
    assert None not in found.values()
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize(
    ("command", "counted"),
    [
        ("kill -SEGV $$", {"SIGSEGV": 1}),
        ("kill -KILL $$", {"SIGKILL": 1}),
        ("kill -USR2 $$", {"other": 1}),
        (f"kill -{signal.SIGRTMIN + 2} $$", {"other": 1}),
        ("exit 0", {}),
        ("exit 3", {}),
    ],
)
def test_a_process_ended_by_a_signal_is_counted_and_can_still_be_waited_for(
    command: str, counted: dict[str, int]
) -> None:
    exits, process = WorkerExits(), ended(command)
    exits.note([process.pid])

    assert counts(exits) == counted
    assert (process.wait(5) < 0) == bool(counted)


def test_a_running_or_reaped_process_is_not_counted() -> None:
    exits, gone = WorkerExits(), ended("kill -KILL $$")
    gone.wait(5)
    with subprocess.Popen(["tail", "-f", os.devnull]) as running:
        exits.note([gone.pid, running.pid])
        running.kill()

    assert counts(exits) == {}
