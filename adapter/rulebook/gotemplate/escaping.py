"""`html`, `js` and `urlquery`, as Go's `text/template` escapes texts for them.

They have no use in a query; but a rule file that has them is read there, and so it is here.
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
    """Return the arguments, printed, as text of HTML."""
    return _printed(arguments).translate(_HTML)


def js(arguments: tuple[Value, ...]) -> str:
    """Return the arguments, printed, as the inside of a string of JavaScript."""
    return "".join(map(_js_escaped, _printed(arguments)))


def urlquery(arguments: tuple[Value, ...]) -> str:
    """Return the arguments, printed, as a value in a URL's query."""
    return quote(_printed(arguments), safe=" ", errors="replace").replace(" ", "+")


def _js_escaped(character: str) -> str:
    plain = character.isprintable() or character == "\x7f"
    return _JS.get(character) or (character if plain else f"\\u{ord(character):04X}")


def _printed(arguments: tuple[Value, ...]) -> str:
    """Return what `print` makes of the arguments, where nothing reads `<no value>`."""
    return print_values(tuple("<no value>" if value is None else value for value in arguments))
