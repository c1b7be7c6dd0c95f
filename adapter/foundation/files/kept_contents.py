"""Contents of files that outlive a worker: the ones that were loaded last, for the worker that replaces it.

They are in anonymous memory that the arbiter makes before it forks, so no folder is needed, and nothing is left behind.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.files.file_contents import FileContent

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGEST_BYTES: Final = 16


class KeptContents:
    """The contents that were kept last. One worker at a time writes, and a later one reads."""

    def __init__(self) -> None:
        self._memory = os.memfd_create("configuration", os.MFD_CLOEXEC)

    def keep(self, contents: Sequence[FileContent]) -> None:
        """Keep these contents in the place of the former ones, without files that could not be read."""
        kept = [(str(content.path), content.text) for content in contents if content.unread is None]
        document = json.dumps(kept).encode()
        os.ftruncate(self._memory, 0)
        with open(self._memory, "wb", closefd=False) as memory:
            memory.seek(0)
            memory.write(_digest(document) + document)

    def contents(self) -> tuple[FileContent, ...]:
        """Return what was kept last; nothing if the worker ended while it wrote."""
        with open(self._memory, "rb", closefd=False) as memory:
            memory.seek(0)
            data = memory.read()
        digest, document = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest != _digest(document):
            return ()
        return tuple(FileContent(Path(path), text) for path, text in json.loads(document))


def _digest(document: bytes) -> bytes:
    return hashlib.blake2b(document, digest_size=_DIGEST_BYTES).digest()
