"""Names and values in PromQL: when they need no quotes, and how they are quoted otherwise.

All values that a caller controls are written into queries by this module, so that no value can end its matcher.
"""

from __future__ import annotations

import re

_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_QUOTED_LABEL_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_:./-]*", re.ASCII)
_QUOTED_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:./-]*", re.ASCII)
_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
DOUBLE = '"'
_OF_SINGLE_QUOTES = {"'": "\\'", '"': '"'}


def is_label_name(text: str) -> bool:
    """Return whether the text can be a label in a query without quotes (letters, digits and `_`)."""
    return _LABEL_NAME.fullmatch(text) is not None


def is_metric_name(text: str) -> bool:
    """Return whether the text can be the name of a metric in a query without quotes."""
    return _METRIC_NAME.fullmatch(text) is not None


def is_quoted_label_name(text: str) -> bool:
    """Return whether the text can be a label in a query, between quotes: keys of Kubernetes and of OpenTelemetry can.

    Others are refused, because exporters choose names, and a quotation mark could end a string of the query.
    """
    return _QUOTED_LABEL_NAME.fullmatch(text) is not None


def is_quoted_metric_name(text: str) -> bool:
    """Return whether the text can be the name of a metric between quotes: it may have the signs of OpenTelemetry, too.

    Others, which Prometheus stores too, are refused, because exporters choose names, and a quotation mark could end a
    string of the query.
    """
    return _QUOTED_METRIC_NAME.fullmatch(text) is not None


def label_in_query(name: str) -> str:
    """Return the name of a label as a query contains it.

    Names that need quotes are quoted, which only Prometheus 3 understands.
    """
    return name if is_label_name(name) else go_quoted(name)


def go_quoted(text: str) -> str:
    """Return the text in double quotes, escaped as Go's `strconv.Quote` does, so that PromQL decodes it unchanged."""
    return f'"{go_escaped(text, quote=DOUBLE)}"'


def go_escaped(text: str, quote: str) -> str:
    """Return the text, escaped for use between these quotes, which are double or single."""
    if text.isascii() and text.isprintable() and quote not in text and "\\" not in text:
        return text
    if quote == DOUBLE:
        return "".join(map(_escape_character, text))
    return "".join(_OF_SINGLE_QUOTES.get(character) or _escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    short = _SHORT.get(character)
    if short:
        return short
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        # Half of a surrogate pair is not text. Go's strings, which are UTF-8, have the replacement character for it.
        return "\\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
