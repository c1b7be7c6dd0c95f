"""Text that others wrote, made fit for a terminal.

Labels, and what Prometheus and API servers say of them, are the choice of whoever runs a pod. Printed as they are they
could move the cursor, rename the window or turn text around (kubectl had it as CVE-2021-25743).
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with all that does not print spelt out, line feeds too."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spelt(char) for char in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines without the space around it, likewise, but with its lines and tabs as they are."""
    lines = text.strip().replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)


def _spelt(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
