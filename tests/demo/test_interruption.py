"""Ctrl-C ends the demo where it waits, so that no library is interrupted while it holds a lock."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from demo.interruption import Interruption

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOPS_WHILE_MODULES_LOAD = """
import runpy, signal, sys
class Stop:
    def find_spec(self, name, *_):
        if name == "demo.day":
            print("loading", flush=True)
            signal.pause()
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Stop())
runpy.run_module("demo", run_name="__main__")
"""


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = signal.getsignal(signal.SIGINT)
    made = Interruption()
    made.install()
    yield made
    signal.signal(signal.SIGINT, before)


def test_without_a_signal_the_demo_goes_on(interruption: Interruption) -> None:
    interruption.sleep(0.0)


def test_a_signal_ends_the_next_sleep_and_nothing_that_runs(interruption: Interruption) -> None:
    requests: queue.LifoQueue[int] = queue.LifoQueue()
    with requests.mutex:
        os.kill(os.getpid(), signal.SIGINT)
    requests.put(1)
    assert requests.get(block=False) == 1
    with pytest.raises(KeyboardInterrupt):
        interruption.sleep(0.0)


def test_a_further_signal_interrupts_what_runs(interruption: Interruption) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interruption.sleep(0.0)


def test_a_signal_while_modules_are_loaded_ends_the_demo_silently() -> None:
    command = [sys.executable, "-c", _STOPS_WHILE_MODULES_LOAD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "loading\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60.0)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (-signal.SIGINT, "", "")
