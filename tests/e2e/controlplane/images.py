"""Stand-ins for images: the adapter's is the checkout with the running Python, and each other one is its program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.e2e.controlplane import programs
from tests.e2e.controlplane.kubelet.settings import Image
from tests.support.checkout import CHECKOUT

ADAPTER: Final = "tidewatch"
EXTENSION: Final = "e2e-extension"
DESCHEDULER: Final = "descheduler"


def images() -> dict[str, Image]:
    """Return the images that run as processes, by repository; the descheduler only if it has been built."""
    found = {ADAPTER: adapter_image(), EXTENSION: extension_image()}
    if folder := programs.built(programs.DESCHEDULER):
        found[DESCHEDULER] = Image(entrypoint=(str(folder / DESCHEDULER),), files=(str(folder),))
    return found


def adapter_image() -> Image:
    """Return the equivalent of the Dockerfile's image: its programs on the PATH, its user, its environment."""
    return _image(arguments=("tidewatch-adapter", "--help"))


def extension_image() -> Image:
    """Return the image of a small extension API server, which shows what a program in a pod sees."""
    return _image(entrypoint=("python", "-m", "tests.e2e.controlplane.extension"))


def _image(entrypoint: tuple[str, ...] = (), arguments: tuple[str, ...] = ()) -> Image:
    programs = Path(sys.prefix) / "bin"
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    return Image(
        entrypoint=entrypoint,
        arguments=arguments,
        environment={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        user=10001,
        group=10001,
        files=tuple(sorted({str(CHECKOUT), sys.prefix, sys.base_prefix} - {"/usr"})),
    )
