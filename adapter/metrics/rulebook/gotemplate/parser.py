"""Turns tokens into the tree of a template, by the rules of Go's `text/template/parse/parse.go`.

What Go refuses when it parses a template (an unknown function, an undeclared variable, an `else` without an `if`) is
refused here, too. Such an error is found when the rule is loaded, not at the first request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from adapter.metrics.rulebook.gotemplate.cursor import Cursor
from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.lexer import TemplateToken, TemplateTokenKind
from adapter.metrics.rulebook.gotemplate.nodes import Action, Break, Continue, If, Invocation, Node, Range, Text, With
from adapter.metrics.rulebook.gotemplate.pipelines import KEYWORDS, Pipelines, text_of
from adapter.metrics.rulebook.gotemplate.variables import Variables

_CONTROL: Final[dict[str, type[If | With | Range]]] = {"if": If, "with": With, "range": Range}

_Nodes: TypeAlias = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template."""

    nodes: tuple[Node, ...]
    fields: frozenset[str]
    """Names of all fields that occur in it."""
    definitions: Mapping[str, tuple[Node, ...]]
    """Templates that `template` can execute, by name: those of `define` and `block`, and the template itself."""

    @property
    def repeats(self) -> bool:
        """Whether a part of it may be executed more than once: it has a `range`, or executes a template."""
        return any(map(_repeats, self.nodes))


def parse_template(text: str, name: str = "") -> Template:
    """Return the template, which its own actions can execute by this name. Raises TemplateError."""
    return _Parser(text, name).template()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._cursor = Cursor(text)
        self._pipelines = Pipelines(self._cursor)
        self._name = name
        self._ranges = 0
        self._definitions: dict[str, _Nodes] = {}

    def template(self) -> Template:
        nodes, stop = self._nodes(defining=True)
        if stop.kind is not TemplateTokenKind.END:
            raise TemplateError(f"`{stop.text}` has no matching `if`, `with` or `range`", stop.line)
        self._define(self._name, nodes, stop)
        return Template(self._definitions[self._name], frozenset(self._pipelines.fields), self._definitions)

    def _nodes(self, *, defining: bool = False) -> tuple[_Nodes, TemplateToken]:
        """Return the nodes up to an `else`, an `end` or the end of the text, and that token."""
        found: list[Node] = []
        while (token := self._cursor.take()).kind is not TemplateTokenKind.END:
            if token.kind is TemplateTokenKind.TEXT:
                found.append(Text(token.text))
                continue
            word = self._cursor.peek_behind_space()
            if word.kind is TemplateTokenKind.WORD and word.text in ("else", "end"):
                return tuple(found), self._cursor.take()
            if word.kind is TemplateTokenKind.WORD and word.text == "define" and defining:
                self._definition(self._cursor.take())
            else:
                found.append(self._action(word))
        return tuple(found), token

    def _action(self, word: TemplateToken) -> Node:
        if word.kind is TemplateTokenKind.WORD and word.text in KEYWORDS:
            return self._keyword(self._cursor.take())
        return Action(self._pipelines.pipe("an action", TemplateTokenKind.CLOSE))

    def _keyword(self, word: TemplateToken) -> Node:
        if word.text in _CONTROL:
            return self._control(word)
        if word.text == "template":
            return self._invocation(word)
        if word.text == "block":
            return self._block(word)
        if word.text == "define":
            raise TemplateError("`define` is allowed only at the outermost level", word.line)
        self._cursor.expect_close(word)
        if not self._ranges:
            raise TemplateError(f"`{word.text}` outside `range`", word.line)
        return Break() if word.text == "break" else Continue()

    def _control(self, word: TemplateToken) -> Node:
        self._cursor.enter(word)
        variables = self._pipelines.variables
        visible = len(variables)
        pipe = self._pipelines.pipe(
            f"`{word.text}`", TemplateTokenKind.CLOSE, most_variables=2 if word.text == "range" else 1
        )
        self._ranges += word.text == "range"
        body, stop = self._nodes()
        self._ranges -= word.text == "range"
        otherwise: _Nodes = ()
        if stop.text == "else":
            otherwise = self._else(word, stop)
        else:
            self._expect_end(word, stop)
        variables.end_scope(visible)
        self._cursor.leave()
        return _CONTROL[word.text](pipe, body, otherwise)

    def _else(self, word: TemplateToken, stop: TemplateToken) -> _Nodes:
        following = self._cursor.peek_behind_space()
        if following.kind is TemplateTokenKind.WORD and following.text == word.text and word.text in ("if", "with"):
            # `else if` shares the `end` of the outer `if`.
            return (self._control(self._cursor.take()),)
        self._cursor.expect_close(stop)
        nodes, stop = self._nodes()
        if stop.text == "else":
            raise TemplateError(f"a second `else` for the `{word.text}` of line {word.line}", stop.line)
        self._expect_end(word, stop)
        return nodes

    def _definition(self, word: TemplateToken) -> None:
        name = self._template_name(word)
        self._cursor.expect_close(word)
        self._read_definition(name, word)

    def _block(self, word: TemplateToken) -> Invocation:
        """Define the template of the block, and return the node that executes it."""
        self._cursor.enter(word)
        name = self._template_name(word)
        pipe = self._pipelines.pipe("`block`", TemplateTokenKind.CLOSE)
        self._read_definition(name, word)
        self._cursor.leave()
        return Invocation(name, pipe, word.line)

    def _invocation(self, word: TemplateToken) -> Invocation:
        name = self._template_name(word)
        if self._cursor.peek_behind_space().kind is TemplateTokenKind.CLOSE:
            self._cursor.take()
            return Invocation(name, None, word.line)
        return Invocation(name, self._pipelines.pipe("`template`", TemplateTokenKind.CLOSE), word.line)

    def _template_name(self, word: TemplateToken) -> str:
        token = self._cursor.peek_behind_space()
        if token.kind is not TemplateTokenKind.STRING:
            raise TemplateError(f"`{word.text}` must be followed by the name of a template in quotes", token.line)
        return text_of(self._cursor.take())

    def _read_definition(self, name: str, word: TemplateToken) -> None:
        with self._own_scope():
            nodes, stop = self._nodes()
        if stop.text == "else":
            raise TemplateError(f"`else` in the `{word.text}` of line {word.line}", stop.line)
        self._expect_end(word, stop)
        self._define(name, nodes, word)

    @contextmanager
    def _own_scope(self) -> Iterator[None]:
        """Open a scope in which only `$` is visible and which is inside no `range`."""
        outer, ranges = self._pipelines.variables, self._ranges
        self._pipelines.variables, self._ranges = Variables(None), 0
        yield
        self._pipelines.variables, self._ranges = outer, ranges

    def _define(self, name: str, nodes: _Nodes, token: TemplateToken) -> None:
        """Add a template. As in Go, one that contains only white space is replaced by another of the same name."""
        known = self._definitions.get(name, ())
        if _is_blank(known):
            self._definitions[name] = nodes
        elif not _is_blank(nodes):
            raise TemplateError(f"the template {name!r} is defined twice", token.line)

    def _expect_end(self, word: TemplateToken, stop: TemplateToken) -> None:
        if stop.kind is TemplateTokenKind.END:
            raise TemplateError(f"the `{word.text}` of line {word.line} has no `end`", word.line)
        self._cursor.expect_close(stop)


def _is_blank(nodes: _Nodes) -> bool:
    return all(isinstance(node, Text) and not node.text.strip() for node in nodes)


def _repeats(node: Node) -> bool:
    if isinstance(node, If | With):
        return any(map(_repeats, (*node.body, *node.otherwise)))
    return isinstance(node, Range | Invocation)
