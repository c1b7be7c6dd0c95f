"""Files that are mapped into memory instead of being read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.files.file_contents import first_bytes, mapped_regular

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("content", [b"", b"some bytes"])
def test_a_mapped_file_has_the_content_of_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with mapped_regular(path) as mapped:
        assert mapped[:] == content
    assert first_bytes(path, 4) == content[:4]


def test_only_regular_files_are_mapped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="not a regular file"), mapped_regular(tmp_path / "fifo"):
        pass
