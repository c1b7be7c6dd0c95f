"""Executes a template on data, by the rules of Go's `text/template/exec.go`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.nodes import (
    Action,
    Break,
    Continue,
    If,
    Invocation,
    Node,
    Pipe,
    Range,
    Text,
    With,
)
from adapter.metrics.rulebook.gotemplate.pipe_values import LONGEST_CHARACTERS, PipeEvaluator, at_line
from adapter.metrics.rulebook.gotemplate.taint import TaintedNumber, pieces_of
from adapter.metrics.rulebook.gotemplate.values import Struct, Value, is_tainted, is_true, kind_of, printed_value
from adapter.metrics.rulebook.gotemplate.variables import Variables

if TYPE_CHECKING:
    from adapter.metrics.rulebook.gotemplate.parser import Template

__all__ = ["OutputPiece", "Struct", "execute", "execute_traced"]


class OutputPiece(NamedTuple):
    """A part of a template's output."""

    text: str
    tainted: bool
    line: int
    """Line of the action that produced it; 0 for the text of the template itself."""


def execute(template: Template, data: Struct) -> str:
    """Return the template's output; raises TemplateError."""
    return "".join(piece.text for piece in execute_traced(template, data))


def execute_traced(template: Template, data: Struct) -> list[OutputPiece]:
    """Return the parts of the template's output, each with its origin; raises TemplateError."""
    state = _State(template.definitions, data)
    state.walk(template.nodes, data)
    return state.output


class _Leave(Exception):  # noqa: N818 - control flow of the template, not a fault
    """`break` or `continue`, on its way to the nearest `range`."""

    def __init__(self, *, stops: bool) -> None:
        super().__init__()
        self.stops = stops


class _State:
    def __init__(self, definitions: Mapping[str, Sequence[Node]], data: Struct) -> None:
        self.output: list[OutputPiece] = []
        self._definitions = definitions
        self._pipes = PipeEvaluator(data)
        self._length = 0

    def walk(self, nodes: Iterable[Node], dot: Value) -> None:
        for node in nodes:
            self._node(node, dot)

    def _node(self, node: Node, dot: Value) -> None:
        match node:
            case Text():
                self._write(node.text, 0)
            case Action():
                self._print(node.pipe, dot)
            case If() | With():
                self._branch(node, dot)
            case Range():
                self._range(node, dot)
            case Invocation():
                self._invoke(node, dot)
            case Break() | Continue():
                raise _Leave(stops=isinstance(node, Break))

    def _print(self, pipe: Pipe, dot: Value) -> None:
        value = self._pipes.value(pipe, dot)
        if not pipe.variables:
            self._write(at_line(pipe.line, printed_value, value, "<no value>"), pipe.line)

    def _write(self, text: str, line: int) -> None:
        self._length += len(text)
        if self._length > LONGEST_CHARACTERS:
            raise TemplateError(f"the output is longer than {LONGEST_CHARACTERS} characters", line)
        self._pipes.step(line)
        for part, is_foreign in pieces_of(text):
            self.output.append(OutputPiece(part, is_foreign, line))

    def _branch(self, node: If | With, dot: Value) -> None:
        visible = len(self._pipes.variables)
        value = self._pipes.value(node.pipe, dot)
        with self._pipes.deeper(node.pipe.line):
            if is_true(value):
                self.walk(node.body, value if isinstance(node, With) else dot)
            else:
                self.walk(node.otherwise, dot)
        self._pipes.variables.end_scope(visible)

    def _invoke(self, node: Invocation, dot: Value) -> None:
        nodes = self._definitions.get(node.name)
        if nodes is None:
            raise TemplateError(f"the template {node.name!r} is not defined", node.line)
        value = None if node.pipe is None else self._pipes.value(node.pipe, dot)
        outer = self._pipes.variables
        self._pipes.variables = Variables(value)
        with self._pipes.deeper(node.line):
            self.walk(nodes, value)
        self._pipes.variables = outer

    def _range(self, node: Range, dot: Value) -> None:
        visible = len(self._pipes.variables)
        elements = _elements(self._pipes.value(node.pipe, dot), node.pipe)
        inside = len(self._pipes.variables)
        with self._pipes.deeper(node.pipe.line):
            is_empty = True
            for key, element in elements:
                is_empty = False
                self._pipes.step(node.pipe.line)
                self._set_range_variables(node.pipe, key, element)
                stops = self._body_stops(node.body, element)
                self._pipes.variables.end_scope(inside)
                if stops:
                    break
            if is_empty:
                self.walk(node.otherwise, dot)
        self._pipes.variables.end_scope(visible)

    def _body_stops(self, body: Iterable[Node], element: Value) -> bool:
        try:
            self.walk(body, element)
        except _Leave as e:
            return e.stops
        return False

    def _set_range_variables(self, pipe: Pipe, key: Value, element: Value) -> None:
        values = (element,) if len(pipe.variables) == 1 else (key, element)
        for name, value in zip(pipe.variables, values, strict=False):
            self._pipes.assign(name, value, pipe.line)


def _elements(value: Value, pipe: Pipe) -> Iterable[tuple[Value, Value]]:
    """Return the keys and values that `range` iterates over: those of a map (in key order), a list or an integer."""
    if value is None:
        return ()
    if isinstance(value, tuple):
        return enumerate(value)
    if isinstance(value, Mapping):
        return [(key, value[key]) for key in sorted(value)]
    if isinstance(value, int) and not isinstance(value, bool) and len(pipe.variables) < 2:
        kind = TaintedNumber if is_tainted(value) else int
        # A generator: a `range` that is left at once must not cost more than the one step that it counts as.
        return ((kind(number), kind(number)) for number in range(value))
    raise TemplateError(f"`range` cannot go over {kind_of(value)}", pipe.line)
