"""What stands for the adapter's image: the checkout and the Python that runs this."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.e2e.controlplane.kubelet.settings import Image

CHECKOUT: Final = Path(__file__).resolve().parents[3]
ADAPTER: Final = "tidewatch"
EXTENSION: Final = "e2e-extension"


def images() -> dict[str, Image]:
    """Return what runs as processes, by repository."""
    return {ADAPTER: adapter_image(), EXTENSION: extension_image()}


def adapter_image() -> Image:
    """Return the image of the Dockerfile: its programs on the PATH, its user, its environment."""
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
