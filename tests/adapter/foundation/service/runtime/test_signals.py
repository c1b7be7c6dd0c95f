"""Ctrl-C before, during and after a command, and in a program that runs in another process's thread."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from adapter.commands.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

_IS_PROCESS_1 = "import os; os.getpid = lambda: 1"


@pytest.fixture
def raises_at_interrupt() -> Iterator[None]:
    """Handle SIGINT as Python does by itself: a run that a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("given", "status"), [("", -signal.SIGINT), (_IS_PROCESS_1, 130)])
def test_another_ctrl_c_ends_the_process_at_once(given: str, status: int) -> None:
    # The kernel delivers no signal to process 1 that it has no handler for, so 130 is from a handler: else it is -2.
    command = f"""
import signal
{given}
from adapter.foundation.service.runtime.signals import run_until_interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    run_until_interrupted("program", lambda: signal.raise_signal(signal.SIGINT))
finally:
    signal.raise_signal(signal.SIGINT)
    print("still there")
"""
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=60.0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "", "program: interrupted\n")


@pytest.mark.parametrize(
    "waits",
    [
        "cleaning_up.append(lock.acquire)",
        "atexit.register(lock.acquire)",
        "threading.Thread(target=lock.acquire).start()",
    ],
    ids=["cleans up", "exits", "joins a thread"],
)
def test_ctrl_c_ends_a_command_that_waits_for_a_lock_which_ctrl_c_left_taken(waits: str) -> None:
    # As a library does that Ctrl-C has interrupted between taking its lock and the block that releases it.
    command = f"""
import atexit, signal, threading
from adapter.foundation.service.runtime import signals
lock, cleaning_up = threading.Lock(), []
def run():
    signals.raise_at_interrupt("program")
    lock.acquire()
    {waits}
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        for clean_up in cleaning_up:
            clean_up()
signals.LONGEST_END_SECONDS = 0.2
signal.signal(signal.SIGINT, signal.default_int_handler)
signals.end_at_signals()
signals.run_until_interrupted("program", run)
"""
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=60.0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "program: interrupted\n")


@pytest.mark.usefixtures("raises_at_interrupt")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-command"], ["check", "--no-such-flag"]])
def test_the_handler_of_a_caller_is_restored_when_the_command_line_ends(arguments: list[str]) -> None:
    with suppress(SystemExit):
        main(arguments)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("raises_at_interrupt")
@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN], ids=["ends", "ignores"])
def test_a_caller_that_handles_ctrl_c_in_its_own_way_keeps_its_handler(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, handler)
    main(["--version"])
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.usefixtures("raises_at_interrupt")
def test_a_command_line_can_run_outside_the_main_thread(capsys: pytest.CaptureFixture[str]) -> None:
    thread = threading.Thread(target=main, args=(["--version"],))
    thread.start()
    thread.join()
    assert capsys.readouterr().out.startswith("tidewatch-adapter ")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
