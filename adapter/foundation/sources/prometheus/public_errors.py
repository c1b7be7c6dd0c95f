"""Errors of queries in words that any client or tenant may read.

They quote nothing from Prometheus, which may name series of other namespaces, and do not say how Prometheus is reached;
the log has both.
"""

from __future__ import annotations

import re

from adapter.foundation.sources.prometheus.errors import PrometheusError, QueryRefusedError, shorten_message

_SERIES = re.compile(r"[{\[]")
"""Matches the beginning of a label set, or of a list of label sets."""
_QUOTES = re.compile(
    r"""[{\["`]|(?<!\w)'|\w+://|\baddr:|\blookup\s|\d+(?:\.\d+){3}|[\da-f]*(?::[\da-f]*){2,}|"""
    r"""\b[\w.-]+:\d|\b[a-z][\w-]*(?:\.[\w-]+)+""",
    re.IGNORECASE,
)
"""Matches the beginning of a label set, of a list of label sets, of a quoted text, or of the address of a server."""
_READ_CHARACTERS = 400
"""No more is searched, because the time grows with the square of the length. Half of it is shown at most."""
_OF_THE_PARSER = ("invalid parameter", "parse error")
"""The beginnings of what Prometheus says of a query that it cannot parse, of which it quotes a part."""


def public_text(error: PrometheusError) -> str | None:
    """Return the part of an error that any client may read; None if clients may read all of it."""
    own = error.own_cause
    if error.public_cause != own:
        # A reason, such as that of a certificate, may name more.
        own = without_series(error.public_cause)
    if not error.said:
        return None if own == error.own_cause else f"query {shorten_message(error.query)}: {own}"
    # A query that Prometheus did not evaluate is quoted itself, and not its series.
    is_of_text = isinstance(error, QueryRefusedError) and error.is_of_text and error.said.startswith(_OF_THE_PARSER)
    said = _up_to(_SERIES if is_of_text else _QUOTES, error.said)
    return f"query {shorten_message(error.query)}: {own}: {said}"


def without_series(text: str) -> str:
    """Return what Prometheus said, up to the first series, text or address that it quotes."""
    return _up_to(_QUOTES, text)


def _up_to(mark: re.Pattern[str], text: str) -> str:
    plain, *rest = mark.split(text[:_READ_CHARACTERS], maxsplit=1)
    return f"{shorten_message(plain)} … (all of it is in the log)".lstrip() if rest else shorten_message(plain)
