"""The program of a child process (`parent`): it runs one function within limits and reports the outcome.

It is started as `python -m recommender.child_processes.child PARENT NICE ADDRESS_SPACE_BYTES RESULT_BYTES`. It reads
the pickled function and its arguments from stdin and writes the pickled outcome to the original stdout; anything that
the function prints goes to stderr. This module imports nothing else from Tidewatch, because each child loads it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import signal
import sys
from typing import Any

RETURNED, RAISED, OUT_OF_MEMORY, NO_RESULT = "returned", "raised", "out of memory", "no result"

_PR_SET_PDEATHSIG = 1
_TEXT_CHARACTERS = 2000


def main() -> None:
    """Run the function that is read from stdin, within the limits given on the command line."""
    parent, nice, address_space_bytes, result_bytes = map(int, sys.argv[1:])
    _die_with(parent)
    outcome_to = os.dup(1)
    os.dup2(2, 1)
    os.nice(nice)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes, address_space_bytes))
    outcome = _outcome(sys.stdin.buffer.read(), result_bytes)
    with os.fdopen(outcome_to, "wb") as pipe:
        pipe.write(outcome)
    sys.stdout.flush()
    # Threads that the function has left behind would delay an ordinary exit.
    os._exit(0)


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended before the child could watch it.
        os._exit(1)


def _outcome(request: bytes, result_bytes: int) -> bytes:
    try:
        function, arguments = pickle.loads(request)  # noqa: S301 - from the process that has started this one
        result = function(*arguments)
    except MemoryError:
        return pickle.dumps((OUT_OF_MEMORY, ""))
    except BaseException as error:  # noqa: BLE001 - reported to the parent process
        return pickle.dumps((RAISED, f"{type(error).__name__}: {error}"[:_TEXT_CHARACTERS]))
    return _pickle_outcome(result, result_bytes)


def _pickle_outcome(result: Any, result_bytes: int) -> bytes:  # noqa: ANN401 - whatever the function returns
    try:
        outcome = pickle.dumps((RETURNED, result))
    except MemoryError:
        return pickle.dumps((OUT_OF_MEMORY, ""))
    except Exception as error:  # noqa: BLE001 - classes decide themselves what they raise when they are pickled
        reason = f"it cannot be pickled: {type(error).__name__}: {error}"[:_TEXT_CHARACTERS]
        return pickle.dumps((NO_RESULT, reason))
    if len(outcome) > result_bytes:
        return pickle.dumps((NO_RESULT, f"it has {len(outcome):,} bytes, more than the {result_bytes:,} allowed"))
    return outcome


if __name__ == "__main__":
    main()
