"""Whether a real browser is available, and what is reported if not."""

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
    """Set the environment variable that names Chromium, or says why there is none.

    Call it where packages can be downloaded. In CI a missing browser ends the run: what is skipped there is tested
    nowhere.
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
