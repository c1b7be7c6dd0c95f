"""The part of the language of Go's `text/template` that rule files use, with the delimiters `<<` and `>>`.

Rule files were written for a Go program, so its template language is part of their format. Here it works on plain
values (strings, numbers, lists, maps) and has no function that could reach anything else. The following is not
supported, and refused with name and line: `call` (no value is a function), complex numbers, and the formats of `printf`
that only apply to other kinds of data.

Steps, levels and lengths are limited, so that executing a template takes at most about half a second.
"""

from __future__ import annotations

from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.evaluate import OutputPiece, Struct, execute, execute_traced
from adapter.metrics.rulebook.gotemplate.parser import Template, parse_template
from adapter.metrics.rulebook.gotemplate.taint import concatenate, taint

__all__ = [
    "OutputPiece",
    "Struct",
    "Template",
    "TemplateError",
    "concatenate",
    "execute",
    "execute_traced",
    "parse_template",
    "taint",
]
