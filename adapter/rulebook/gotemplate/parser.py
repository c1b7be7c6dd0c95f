"""From tokens to the tree of a template, by the rules of Go's `text/template/parse/parse.go`.

What Go refuses when it reads a template (an unknown function, a variable that was not declared, an `else` without an
`if`) is refused here too, so that a rule with such an error is known at load and not when the first asker comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.rulebook.gotemplate.errors import TemplateError
from adapter.rulebook.gotemplate.functions import FUNCTIONS
from adapter.rulebook.gotemplate.lexer import Kind, Token, tokens
from adapter.rulebook.gotemplate.literals import LiteralError, read_character, read_number, read_string
from adapter.rulebook.gotemplate.nodes import (
    Action,
    Break,
    Chain,
    Command,
    Continue,
    Dot,
    Field,
    Function,
    If,
    Literal,
    Nil,
    Node,
    Operand,
    Pipe,
    Range,
    Text,
    Variable,
    With,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTROL: dict[str, type[If | With | Range]] = {"if": If, "with": With, "range": Range}
_KEYWORDS = frozenset({*_CONTROL, "else", "end", "break", "continue"})
_LAZY = frozenset({"and", "or"})
_NOT_SUPPORTED = frozenset({"define", "template", "block", "html", "js", "urlquery", "call"})
_DEEPEST = 50
"""Levels of parentheses and control words; a template for a query has about three."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template that was read."""

    nodes: tuple[Node, ...]
    fields: frozenset[str]
    """The names of all fields that appear anywhere in it."""


def parse_template(text: str) -> Template:
    """Return the template; raises TemplateError."""
    return _Parser(text).template()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0
        self._variables = ["$"]
        self._ranges = 0
        self._depth = 0
        self._fields: set[str] = set()

    def template(self) -> Template:
        nodes, stop = self._nodes()
        if stop.kind is not Kind.END:
            raise TemplateError(f"`{stop.text}` without an `if`, `with` or `range` that it belongs to", stop.line)
        return Template(nodes, frozenset(self._fields))

    def _nodes(self) -> tuple[tuple[Node, ...], Token]:
        """Return the nodes up to an `else`, an `end` or the end of the text, and that token."""
        found: list[Node] = []
        while (token := self._take()).kind is not Kind.END:
            if token.kind is Kind.TEXT:
                found.append(Text(token.text))
                continue
            word = self._peek_behind_space()
            if word.kind is Kind.WORD and word.text in ("else", "end"):
                return tuple(found), self._take()
            found.append(self._action(word))
        return tuple(found), token

    def _action(self, word: Token) -> Node:
        if word.kind is Kind.WORD and word.text in _KEYWORDS:
            return self._keyword(self._take())
        pipe = self._pipe("an action", Kind.CLOSE)
        return Action(pipe)

    def _keyword(self, word: Token) -> Node:
        if word.text in _CONTROL:
            return self._control(word)
        self._expect_close(word)
        if not self._ranges:
            raise TemplateError(f"`{word.text}` outside of `range`", word.line)
        return Break() if word.text == "break" else Continue()

    def _control(self, word: Token) -> Node:
        self._deeper(word)
        visible = len(self._variables)
        pipe = self._pipe(f"`{word.text}`", Kind.CLOSE, most_variables=2 if word.text == "range" else 1)
        inside = len(self._variables)
        self._ranges += word.text == "range"
        body, stop = self._nodes()
        self._ranges -= word.text == "range"
        del self._variables[inside:]
        otherwise: tuple[Node, ...] = ()
        if stop.text == "else":
            otherwise = self._else(word, stop)
        elif stop.kind is Kind.END:
            raise TemplateError(f"the `{word.text}` of line {word.line} has no `end`", word.line)
        else:
            self._expect_close(stop)
        del self._variables[visible:]
        self._depth -= 1
        return _CONTROL[word.text](pipe, body, otherwise)

    def _else(self, word: Token, stop: Token) -> tuple[Node, ...]:
        following = self._peek_behind_space()
        if following.kind is Kind.WORD and following.text == word.text and word.text in ("if", "with"):
            # `else if` shares the `end` of the whole.
            return (self._control(self._take()),)
        self._expect_close(stop)
        nodes, stop = self._nodes()
        if stop.kind is Kind.END:
            raise TemplateError(f"the `{word.text}` of line {word.line} has no `end`", word.line)
        if stop.text != "end":
            raise TemplateError(f"a second `else` for the `{word.text}` of line {word.line}", stop.line)
        self._expect_close(stop)
        return nodes

    def _pipe(self, where: str, closing: Kind, most_variables: int = 1) -> Pipe:
        start = self._peek_behind_space()
        variables, declares = self._declaration(most_variables)
        commands = [self._command(where)]
        while (token := self._take()).kind is Kind.PIPE:
            commands.append(self._command(where, later=True))
        if token.kind is not closing:
            raise _unexpected(token, where)
        if declares:
            self._variables.extend(variables)
        return Pipe(tuple(commands), start.line, variables, declares)

    def _declaration(self, most: int) -> tuple[tuple[str, ...], bool]:
        """Return the variables that the pipeline sets, and whether it declares them."""
        before = self._at
        variables: list[str] = []
        while (token := self._peek_behind_space()).kind is Kind.VARIABLE and len(variables) < most:
            variables.append(self._take().text)
            sign = self._peek_behind_space()
            if sign.kind in (Kind.DECLARE, Kind.ASSIGN):
                self._take()
                return self._settable(tuple(variables), sign), sign.kind is Kind.DECLARE
            if sign.kind is not Kind.COMMA or most < 2:
                break
            self._take()
        if len(variables) > 1 or (variables and self._tokens[self._at - 1].kind is Kind.COMMA):
            raise TemplateError("`range` sets at most two variables, as in `range $key, $value := …`", token.line)
        self._at = before
        return (), False

    def _settable(self, variables: tuple[str, ...], sign: Token) -> tuple[str, ...]:
        for name in variables:
            if sign.kind is Kind.ASSIGN and name not in self._variables:
                raise TemplateError(f"the variable {name} is not declared", sign.line)
        return variables

    def _command(self, where: str, *, later: bool = False) -> Command:
        start = self._peek_behind_space()
        operands: list[Operand] = []
        while (operand := self._operand()) is not None:
            operands.append(operand)
            if self._peek().kind is not Kind.SPACE:
                break
        if not operands:
            raise _unexpected(self._peek_behind_space(), where)
        self._peek_behind_space()
        first = operands[0]
        if later and isinstance(first, Dot | Literal | Nil):
            raise TemplateError("behind | stands a function, and this is none", start.line)
        if isinstance(first, Nil):
            raise TemplateError("nil is not a command", start.line)
        return Command(tuple(operands), start.line)

    def _operand(self) -> Operand | None:
        token = self._peek_behind_space()
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
        raise TemplateError(f"unexpected .{names[0]} behind {token.text}", token.line)

    def _term(self, token: Token) -> Operand | None:
        reader = {
            Kind.WORD: self._word,
            Kind.DOT: lambda _: Dot(),
            Kind.FIELD: self._field,
            Kind.VARIABLE: self._variable,
            Kind.STRING: _string,
            Kind.CHARACTER: _character,
            Kind.NUMBER: _number,
            Kind.LEFT_PAREN: self._parentheses,
        }.get(token.kind)
        return reader(self._take()) if reader else None

    def _word(self, token: Token) -> Operand:
        word = token.text
        if word in ("true", "false"):
            return Literal(word == "true")
        if word == "nil":
            return Nil()
        if word in _NOT_SUPPORTED:
            raise TemplateError(f"`{word}` is not supported in rule files", token.line)
        if word in FUNCTIONS or word in _LAZY:
            return Function(word)
        if word in _KEYWORDS:
            raise TemplateError(f"unexpected `{word}` inside of an action", token.line)
        raise TemplateError(f"the function {word!r} is not defined", token.line)

    def _field(self, token: Token) -> Field:
        return Field((self._remember(token),))

    def _variable(self, token: Token) -> Variable:
        if token.text not in self._variables:
            raise TemplateError(f"the variable {token.text} is not declared", token.line)
        return Variable(token.text, ())

    def _parentheses(self, token: Token) -> Pipe:
        self._deeper(token)
        pipe = self._pipe("parentheses", Kind.RIGHT_PAREN)
        self._depth -= 1
        return pipe

    def _field_names(self) -> tuple[str, ...]:
        names: list[str] = []
        while self._peek().kind is Kind.FIELD:
            names.append(self._remember(self._take()))
        return tuple(names)

    def _remember(self, token: Token) -> str:
        name = token.text[1:]
        self._fields.add(name)
        return name

    def _deeper(self, token: Token) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TemplateError(f"more than {_DEEPEST} levels of parentheses and control words", token.line)

    def _expect_close(self, word: Token) -> None:
        token = self._peek_behind_space()
        if token.kind is not Kind.CLOSE:
            raise _unexpected(token, f"`{word.text}`")
        self._take()

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind is not Kind.END
        return token

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _peek_behind_space(self) -> Token:
        while self._peek().kind is Kind.SPACE:
            self._at += 1
        return self._peek()


def _unexpected(token: Token, where: str) -> TemplateError:
    if token.kind is Kind.CLOSE:
        return TemplateError(f"{where} lacks a value", token.line)
    return TemplateError(f"unexpected {token.text!r} in {where}", token.line)


def _string(token: Token) -> Literal:
    return _literal(read_string, token)


def _character(token: Token) -> Literal:
    return _literal(read_character, token)


def _number(token: Token) -> Literal:
    return _literal(read_number, token)


def _literal(read: Callable[[str], str | int | float], token: Token) -> Literal:
    try:
        return Literal(read(token.text))
    except LiteralError as e:
        raise TemplateError(str(e), token.line) from e
