"""Turns tokens into pipelines: values, function calls, `|`, and the variables that are set to the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from adapter.metrics.rulebook.gotemplate.cursor import Cursor, unexpected_token_error
from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.functions import FUNCTIONS
from adapter.metrics.rulebook.gotemplate.lexer import TemplateToken, TemplateTokenKind
from adapter.metrics.rulebook.gotemplate.literals import LiteralError, read_character, read_number, read_string
from adapter.metrics.rulebook.gotemplate.nodes import (
    Chain,
    Command,
    Dot,
    Field,
    Function,
    Literal,
    Nil,
    Operand,
    Pipe,
    Variable,
)
from adapter.metrics.rulebook.gotemplate.variables import Variables

_L = TypeVar("_L", str, int, int | float)

KEYWORDS: Final = frozenset({
    "if", "with", "range", "else", "end", "break", "continue", "define", "template", "block",
})  # fmt: skip
_LAZY: Final = frozenset({"and", "or"})
_NOT_SUPPORTED: Final = frozenset({"call"})


class Pipelines:
    """Parses pipelines, and knows which variables are visible at the current position."""

    def __init__(self, cursor: Cursor) -> None:
        self.variables: Variables[None] = Variables(None)
        """Visible variables; the code that opens a scope also ends it."""
        self.fields: set[str] = set()
        """Names of all fields that have occurred so far."""
        self._cursor = cursor

    def pipe(self, where: str, closing: TemplateTokenKind, most_variables: int = 1) -> Pipe:
        """Return the pipeline up to the closing token, and advance past that token. Raises TemplateError."""
        start = self._cursor.peek_behind_space()
        variables, declares = self._declaration(most_variables)
        commands = [self._command(where)]
        while (token := self._cursor.take()).kind is TemplateTokenKind.PIPE:
            commands.append(self._command(where, later=True))
        if token.kind is not closing:
            raise unexpected_token_error(token, where)
        return Pipe(tuple(commands), start.line, variables, declares)

    def _declaration(self, most: int) -> tuple[tuple[str, ...], bool]:
        """Return the variables that the pipeline sets, and whether it declares them."""
        variables: list[str] = []
        for token in self._cursor.upcoming_tokens():
            expects_variable = len(variables) % 2 == 0
            if expects_variable and token.kind is TemplateTokenKind.VARIABLE and len(variables) < 2 * most:
                variables.append(token.text)
            elif not expects_variable and token.kind is TemplateTokenKind.COMMA and most > 1:
                variables.append(",")
            elif not expects_variable and token.kind in (TemplateTokenKind.DECLARE, TemplateTokenKind.ASSIGN):
                self._step_behind(token)
                # As in Go, they are visible even in their own value; whether they have one shows at execution.
                for name in variables[::2]:
                    self.variables.declare(name, None)
                return tuple(variables[::2]), token.kind is TemplateTokenKind.DECLARE
            elif len(variables) > 1:
                raise TemplateError("`range` sets at most two variables, as in `range $key, $value := …`", token.line)
            else:
                break
        return (), False

    def _step_behind(self, token: TemplateToken) -> None:
        while self._cursor.take() is not token:
            pass

    def _command(self, where: str, *, later: bool = False) -> Command:
        start = self._cursor.peek_behind_space()
        operands: list[Operand] = []
        while (operand := self._operand()) is not None:
            operands.append(operand)
            if self._cursor.peek().kind is not TemplateTokenKind.SPACE:
                break
        if not operands:
            raise unexpected_token_error(self._cursor.peek_behind_space(), where)
        self._cursor.peek_behind_space()
        first = operands[0]
        if later and isinstance(first, Dot | Literal | Nil):
            raise TemplateError("| must be followed by a function", start.line)
        return Command(tuple(operands), start.line)

    def _operand(self) -> Operand | None:
        token = self._cursor.peek_behind_space()
        term = self._term(token)
        if term is None:
            return None
        names = self._field_names()
        if not names:
            return term
        if isinstance(term, Field):
            return Field((*term.names, *names))
        if isinstance(term, Variable):
            return Variable(term.name, (*term.names, *names))
        if isinstance(term, Pipe):
            return Chain(term, names)
        raise TemplateError(f"unexpected .{names[0]} after {token.text}", token.line)

    def _term(self, token: TemplateToken) -> Operand | None:
        reader = {
            TemplateTokenKind.WORD: self._word,
            TemplateTokenKind.DOT: lambda _: Dot(),
            TemplateTokenKind.FIELD: self._field,
            TemplateTokenKind.VARIABLE: self._variable,
            TemplateTokenKind.STRING: lambda token: Literal(text_of(token)),
            TemplateTokenKind.CHARACTER: lambda token: Literal(_literal(read_character, token)),
            TemplateTokenKind.NUMBER: lambda token: Literal(_literal(read_number, token)),
            TemplateTokenKind.LEFT_PAREN: self._parentheses,
        }.get(token.kind)
        return reader(self._cursor.take()) if reader else None

    def _word(self, token: TemplateToken) -> Operand:
        word = token.text
        if word in ("true", "false"):
            return Literal(word == "true")
        if word == "nil":
            return Nil()
        if word in _NOT_SUPPORTED:
            raise TemplateError(f"`{word}` is not supported in rule files", token.line)
        if word in FUNCTIONS or word in _LAZY:
            return Function(word)
        if word in KEYWORDS:
            raise TemplateError(f"unexpected `{word}` inside an action", token.line)
        raise TemplateError(f"the function {word!r} is not defined", token.line)

    def _field(self, token: TemplateToken) -> Field:
        return Field((self._remember(token),))

    def _variable(self, token: TemplateToken) -> Variable:
        if token.text not in self.variables:
            raise TemplateError(f"the variable {token.text} is not declared", token.line)
        return Variable(token.text, ())

    def _parentheses(self, token: TemplateToken) -> Pipe:
        self._cursor.enter(token)
        pipe = self.pipe("parentheses", TemplateTokenKind.RIGHT_PAREN)
        self._cursor.leave()
        return pipe

    def _field_names(self) -> tuple[str, ...]:
        names: list[str] = []
        while self._cursor.peek().kind is TemplateTokenKind.FIELD:
            names.append(self._remember(self._cursor.take()))
        return tuple(names)

    def _remember(self, token: TemplateToken) -> str:
        name = token.text[1:]
        self.fields.add(name)
        return name


def text_of(token: TemplateToken) -> str:
    """Return the string that a quoted token contains. Raises TemplateError."""
    return _literal(read_string, token)


def _literal(read: Callable[[str], _L], token: TemplateToken) -> _L:
    try:
        return read(token.text)
    except LiteralError as e:
        raise TemplateError(str(e), token.line) from e
