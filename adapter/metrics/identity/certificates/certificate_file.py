"""The file through which the TLS layer gets a certificate from a Secret.

One file holds key, certificate and authority, so that one rename replaces them all, and no connection is ever accepted
with the key of one generation and the certificate of another. A restarted worker also continues from this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.files.file_contents import read_regular
from adapter.foundation.files.replaced_file import replace_file
from adapter.metrics.identity.certificates.generations import GenerationError, read_authorities, read_generation
from adapter.metrics.identity.certificates.issuing import certificate_pem, key_pem

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.metrics.identity.certificates.generations import Generation

FILE = "serving.pem"


def write_kept(file: Path, generation: Generation) -> None:
    """Write the generation to the file, readable only by its owner. Raises OSError."""
    content = key_pem(generation.key) + certificate_pem(generation.certificate) + certificate_pem(generation.authority)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, content, mode=0o600)


def read_kept(file: Path) -> Generation | None:
    """Return the generation in the file; None if there is none, or it cannot be used."""
    try:
        content = read_regular(file)
        return read_generation(content, content, read_authorities(content))
    except (OSError, GenerationError):
        return None
