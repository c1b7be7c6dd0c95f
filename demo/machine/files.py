"""Files that other processes watch."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from adapter.foundation.files import replaced_file as foundation

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Replace a file as a whole; its folder is created if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    foundation.replace_file(path, text.encode(), durable=False)


def raise_open_files_limit(wanted: int = 8192) -> None:
    """Let this process and its children open more files, as far as the machine allows: each connection takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
