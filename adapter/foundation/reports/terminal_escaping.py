"""Makes text from untrusted sources safe for a terminal.

Anybody who runs a pod chooses its labels, which also occur in messages of Prometheus and API servers. Printed
unchanged, they could move the cursor, rename the window or reverse text (CVE-2021-25743 in kubectl).
"""

from __future__ import annotations

import os
import sys


def is_coloured() -> bool:
    """Return whether standard output is a terminal that shows colours, unless NO_COLOR is set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Return the text with all unprintable characters escaped, line feeds included."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape_character(char) for char in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines, stripped, with all unprintable characters but line feeds and tabs escaped."""
    lines = text.strip().replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)


def _escape_character(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
