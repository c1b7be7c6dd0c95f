"""Contents of files that outlive a worker, for its replacement: all versions since the last one that was fully valid.

Parts of the newest version may be refused; the last good version of such a part is in an earlier version. All versions
are in anonymous memory that the arbiter allocates before it forks, so no folder is needed, and nothing is left behind.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapter.foundation.files.file_contents import FileContent

_log = logging.getLogger(__name__)

_DIGEST_BYTES: Final = 16
_MOST_VERSIONS: Final = 8
_MOST_BYTES: Final = 16 * 2**20
"""Limit on the size of all versions together; the newest version is kept whatever its size."""


class KeptContents:
    """Versions of the contents of files. Only one worker at a time writes them, and its replacement reads them."""

    def __init__(self) -> None:
        self._memory = os.memfd_create("configuration", os.MFD_CLOEXEC)
        self._newest_is_kept = True

    def keep(self, contents: Sequence[FileContent]) -> None:
        """Keep these contents as the newest version, without unreadable files; drop old versions beyond the limits.

        If the system refuses the memory for them, the old versions stay.
        """
        newest = tuple(content for content in contents if content.unread is None)
        before = self.versions()
        refusal = self._write_newest((*before, newest) if before[-1:] != (newest,) else before)
        self._newest_is_kept = refusal is None
        if refusal is None:
            return
        self._write_newest(before)
        # The kernel limits anonymous memory as it limits files. The configuration itself must take effect anyway.
        _log.warning(
            "the configuration is not kept for a replacement of this worker: %s: if its files are unusable when it "
            "starts, the replacement uses an earlier configuration or cannot start: raise the limit on file sizes "
            "(ulimit -f)",
            refusal.strerror,
        )

    def forget_earlier(self) -> None:
        """Forget all versions but the newest, which is in force as a whole."""
        if self._newest_is_kept:
            self._write_newest(self.versions()[-1:])
        else:
            self.forget()

    def forget(self) -> None:
        """Forget all versions."""
        os.ftruncate(self._memory, 0)

    def _write_newest(self, versions: Sequence[tuple[FileContent, ...]]) -> OSError | None:
        """Write as many of the newest versions as the system allows; return the refusal if that is none of them."""
        refusal: OSError | None = None
        for oldest in range(len(versions)):
            try:
                self._write(versions[oldest:])
            except OSError as error:
                refusal = error
            else:
                return None
        return refusal

    def _write(self, versions: Sequence[tuple[FileContent, ...]]) -> None:
        encoded: list[str] = []
        for version in reversed(versions[-_MOST_VERSIONS:]):
            text = json.dumps([(str(content.path), content.text) for content in version])
            if encoded and sum(map(len, encoded)) + len(text) > _MOST_BYTES:
                break
            encoded.insert(0, text)
        document = f"[{','.join(encoded)}]".encode()
        self.forget()
        with open(self._memory, "wb", closefd=False) as memory:
            memory.seek(0)
            memory.write(_digest(document) + document)

    def versions(self) -> tuple[tuple[FileContent, ...], ...]:
        """Return the kept versions, the newest last; none if the worker ended while it was writing."""
        with open(self._memory, "rb", closefd=False) as memory:
            memory.seek(0)
            data = memory.read()
        digest, document = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest != _digest(document):
            return ()
        return tuple(tuple(FileContent(Path(path), text) for path, text in version) for version in json.loads(document))


def _digest(document: bytes) -> bytes:
    return hashlib.blake2b(document, digest_size=_DIGEST_BYTES).digest()
