"""Expands a template that is in no rule, for comparisons with Go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.metrics.rulebook.naming import Naming, parse_expansion

if TYPE_CHECKING:
    from adapter.foundation.objects.regex import Pattern


def expand(pattern: Pattern, template: str, text: str) -> str | None:
    """Return what Go's `Regexp.Expand` makes of the template for the first match in the text; None without a match."""
    return Naming(pattern, template, parse_expansion(template)).name_for(text)
