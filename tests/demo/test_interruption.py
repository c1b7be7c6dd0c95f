"""Ctrl-C is not lost where Python drops its KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from demo.interruption import Interruption

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    before = signal.getsignal(signal.SIGINT)
    made = Interruption()
    made.install()
    yield made
    signal.signal(signal.SIGINT, before)


def test_without_a_signal_the_demo_goes_on(interruption: Interruption) -> None:
    interruption.sleep(0.0)


def test_a_signal_interrupts_what_runs(interruption: Interruption) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interruption.sleep(0.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_whose_exception_is_dropped_ends_the_next_sleep(interruption: Interruption) -> None:
    class Final:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    made = Final()
    del made
    with pytest.raises(KeyboardInterrupt):
        interruption.sleep(0.0)
