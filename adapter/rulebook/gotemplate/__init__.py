"""The language of Go's `text/template`, as far as rule files use it, with the delimiters `<<` and `>>`.

Rule files were written for a Go program, so its template language is part of their format. Here it works on plain
values (texts, numbers, lists, maps) and holds no function that could reach anything else. Not supported, and refused
by name and line: `define`, `template`, `block`, `html`, `js`, `urlquery`, `call`, complex numbers.
"""

from __future__ import annotations

from adapter.rulebook.gotemplate.errors import TemplateError
from adapter.rulebook.gotemplate.evaluate import Struct, execute
from adapter.rulebook.gotemplate.parser import Template, parse_template

__all__ = ["Struct", "Template", "TemplateError", "execute", "parse_template"]
