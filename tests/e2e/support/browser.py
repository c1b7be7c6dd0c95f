"""Whether a real browser can be had, and what is said where none can."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.support.checkout import CHECKOUT

CHROMIUM: Final = "CHROMIUM_BINARY"
WHY_NOT: Final = "E2E_NO_BROWSER"
_SECONDS: Final = 600


def find() -> None:
    """Let the environment say which Chromium is meant, or why there is none. Call it where packages can be downloaded.

    In CI a browser that is missing ends the run: what is left out there is tested nowhere.
    """
    try:
        found = subprocess.run(
            [CHECKOUT / ".ci" / "chromium"], stdout=subprocess.PIPE, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        os.environ[WHY_NOT] = "Chromium could not be downloaded in time"
        return
    if found.returncode == 0:
        os.environ[CHROMIUM] = found.stdout.strip()
        return
    if os.environ.get("CI"):
        sys.exit("e2e: Chromium could not be installed (the reason is above), and CI leaves no test out")
    os.environ[WHY_NOT] = "Chromium could not be installed; the reason is above"
    sys.stderr.write("e2e: no browser here, tests of the page will be left out\n")


needs_browser: Final = pytest.mark.skipif(
    CHROMIUM not in os.environ, reason=f"not run: {os.environ.get(WHY_NOT, 'run these tests by `make e2e`')}"
)
