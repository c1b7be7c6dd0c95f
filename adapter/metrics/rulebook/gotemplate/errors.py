"""The error of a template that cannot be parsed or executed."""

from __future__ import annotations


class TemplateError(ValueError):
    """A template cannot be parsed or executed. The message says why; `line` is its line, from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line
