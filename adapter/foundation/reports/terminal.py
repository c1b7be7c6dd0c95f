"""Makes text from others safe for a terminal.

Anybody who runs a pod chooses its labels, which also occur in messages of Prometheus and API servers. Printed
unchanged, they could move the cursor, rename the window or reverse text (CVE-2021-25743 in kubectl).
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with all unprintable characters escaped, line feeds included."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape_character(char) for char in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines, stripped and with unprintable characters escaped except line feeds and tabs."""
    lines = text.strip().replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)


def _escape_character(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
