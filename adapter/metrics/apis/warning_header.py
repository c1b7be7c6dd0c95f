"""The `Warning` header: what a person should know about a valid answer.

kubectl prints each such line; client-go logs it. The form is Kubernetes' own (RFC 7234 with code 299 and no agent, as
`NewWarningHeader` in k8s.io/apimachinery writes and reads it). Text is ASCII on one line and short: API servers cut
warnings off at 256 characters, and proxies refuse headers of some KiB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_WARNINGS = 8
LONGEST_WARNING = 240
"""Longest text in characters, before quoting."""

HPA_CONTROLLER = "kube-controller-manager"
"""The prefix of its User-Agent. It would log every warning of every answer, ten thousand times in 15 seconds."""

_ASCII = str.maketrans({"…": "...", "–": "-", "—": "-", "“": '"', "”": '"', "’": "'", "±": "+-"})  # noqa: RUF001 - likely ones


def warning_headers(warnings: Iterable[str], user_agent: str) -> tuple[tuple[str, str], ...]:
    """Return one header line for each distinct warning; none for the HPA controller."""
    if user_agent.startswith(HPA_CONTROLLER):
        return ()
    texts = [text for text in dict.fromkeys(map(_text, warnings)) if text]
    if len(texts) > MOST_WARNINGS:
        left_out = len(texts) - MOST_WARNINGS + 1
        texts[MOST_WARNINGS - 1 :] = [f"{left_out} further warnings are left out"]
    return tuple(("Warning", f"299 - {_quote_text(text)}") for text in texts)


def _text(warning: str) -> str:
    """Return the warning in printable ASCII, on one line, and not too long."""
    line = " ".join(warning.translate(_ASCII).split())
    plain = "".join(char if " " <= char <= "~" else "?" for char in line)
    return plain if len(plain) <= LONGEST_WARNING else f"{plain[: LONGEST_WARNING - 3]}..."


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
