"""What can be wrong with a template: found when it is read, or when it is executed."""

from __future__ import annotations


class TemplateError(ValueError):
    """A template cannot be read or executed; the message says why, `line` where in its text, counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line
