"""`html`, `js` and `urlquery`, as Go's `text/template` escapes texts for them.

They are of no use in a query, but prometheus-adapter accepts a rule file that contains them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from adapter.rulebook.gotemplate.printf import print_values

if TYPE_CHECKING:
    from adapter.rulebook.gotemplate.values import Value

_HTML: Final = str.maketrans({
    '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "\x00": "\ufffd",
})  # fmt: skip
_JS: Final = {"\\": r"\\", "'": r"\'", '"': r"\"", "<": r"\u003C", ">": r"\u003E", "&": r"\u0026", "=": r"\u003D"}


def html(arguments: tuple[Value, ...]) -> str:
    """Return the printed arguments, escaped for HTML."""
    return _printed(arguments).translate(_HTML)


def js(arguments: tuple[Value, ...]) -> str:
    """Return the printed arguments, escaped for a JavaScript string."""
    return "".join(map(_js_escaped, _printed(arguments)))


def urlquery(arguments: tuple[Value, ...]) -> str:
    """Return the printed arguments, escaped for a value in the query of a URL."""
    return quote(_printed(arguments), safe=" ", errors="replace").replace(" ", "+")


def _js_escaped(character: str) -> str:
    plain = character.isprintable() or character == "\x7f"
    return _JS.get(character) or (character if plain else f"\\u{ord(character):04X}")


def _printed(arguments: tuple[Value, ...]) -> str:
    """Return what `print` prints for the arguments, with `<no value>` for nothing."""
    return print_values(tuple("<no value>" if value is None else value for value in arguments))
