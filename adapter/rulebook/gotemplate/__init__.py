"""The language of Go's `text/template`, as far as rule files use it, with the delimiters `<<` and `>>`.

Rule files were written for a Go program, so its template language is part of their format. Here it works on plain
values (texts, numbers, lists, maps) and holds no function that could reach anything else. Not supported, and refused
by name and line: `call` (no value is a function), complex numbers, and the formats of `printf` that only data of other
kinds could use.

Steps, levels and lengths are bounded: no template can keep its executor busy for longer than about half a second.
"""

from __future__ import annotations

from adapter.rulebook.gotemplate.errors import TemplateError
from adapter.rulebook.gotemplate.evaluate import OutputPiece, Struct, execute, execute_traced
from adapter.rulebook.gotemplate.parser import Template, parse_template
from adapter.rulebook.gotemplate.taint import joined, tainted

__all__ = [
    "OutputPiece",
    "Struct",
    "Template",
    "TemplateError",
    "execute",
    "execute_traced",
    "joined",
    "parse_template",
    "tainted",
]
