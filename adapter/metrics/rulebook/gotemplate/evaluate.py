"""Executes a template on data, by the rules of Go's `text/template/exec.go`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.functions import call
from adapter.metrics.rulebook.gotemplate.nodes import (
    Action,
    Break,
    Chain,
    Command,
    Continue,
    Dot,
    Field,
    Function,
    If,
    Invocation,
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
from adapter.metrics.rulebook.gotemplate.taint import TaintedNumber, pieces_of
from adapter.metrics.rulebook.gotemplate.values import (
    Struct,
    UnfitValueError,
    Value,
    field_of,
    is_tainted,
    is_true,
    kind_of,
    shown,
)
from adapter.metrics.rulebook.gotemplate.variables import Variables

if TYPE_CHECKING:
    from adapter.metrics.rulebook.gotemplate.parser import Template

__all__ = ["OutputPiece", "Struct", "execute", "execute_traced"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MOST_STEPS: Final = 20_000
"""Limit of commands, outputs and iterations of `range`, which take a fifth of a second."""
_CHARACTERS_PER_STEP: Final = 100
"""Characters in the arguments and the value of a function that count as one more step."""
_LONGEST: Final = 1 << 20
"""Limit of the characters of the output, and of the value of a function."""
_DEEPEST: Final = 100
"""Limit of nested control words, parentheses and templates during execution; Go allows 100,000."""


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
        self._variables: Variables[Value] = Variables(data)
        self._steps = 0
        self._depth = 0
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
        value = self._pipe(pipe, dot)
        if not pipe.variables:
            self._write(_at_line(pipe.line, shown, value, "<no value>"), pipe.line)

    def _write(self, text: str, line: int) -> None:
        self._length += len(text)
        if self._length > _LONGEST:
            raise TemplateError(f"the output is longer than {_LONGEST} characters", line)
        self._step(line)
        for part, is_foreign in pieces_of(text):
            self.output.append(OutputPiece(part, is_foreign, line))

    def _branch(self, node: If | With, dot: Value) -> None:
        visible = len(self._variables)
        value = self._pipe(node.pipe, dot)
        with self._deeper(node.pipe.line):
            if is_true(value):
                self.walk(node.body, value if isinstance(node, With) else dot)
            else:
                self.walk(node.otherwise, dot)
        self._variables.end_scope(visible)

    def _invoke(self, node: Invocation, dot: Value) -> None:
        nodes = self._definitions.get(node.name)
        if nodes is None:
            raise TemplateError(f"the template {node.name!r} is not defined", node.line)
        value = None if node.pipe is None else self._pipe(node.pipe, dot)
        outer = self._variables
        self._variables = Variables(value)
        with self._deeper(node.line):
            self.walk(nodes, value)
        self._variables = outer

    @contextmanager
    def _deeper(self, line: int) -> Iterator[None]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TemplateError(f"more than {_DEEPEST} levels: check whether a template calls itself", line)
        try:
            yield
        finally:
            self._depth -= 1

    def _range(self, node: Range, dot: Value) -> None:
        visible = len(self._variables)
        elements = _elements(self._pipe(node.pipe, dot), node.pipe)
        inside = len(self._variables)
        with self._deeper(node.pipe.line):
            is_empty = True
            for key, element in elements:
                is_empty = False
                self._step(node.pipe.line)
                self._set_range_variables(node.pipe, key, element)
                stops = self._body_stops(node.body, element)
                self._variables.end_scope(inside)
                if stops:
                    break
            if is_empty:
                self.walk(node.otherwise, dot)
        self._variables.end_scope(visible)

    def _body_stops(self, body: Iterable[Node], element: Value) -> bool:
        try:
            self.walk(body, element)
        except _Leave as e:
            return e.stops
        return False

    def _set_range_variables(self, pipe: Pipe, key: Value, element: Value) -> None:
        values = (element,) if len(pipe.variables) == 1 else (key, element)
        for name, value in zip(pipe.variables, values, strict=False):
            self._assign(name, value, pipe.line)

    def _assign(self, name: str, value: Value, line: int) -> None:
        self._require(name, line)
        self._variables[name] = value

    def _require(self, name: str, line: int) -> None:
        if name not in self._variables:
            raise TemplateError(f"the variable {name} is not set here", line)

    def _step(self, line: int, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise TemplateError(f"more than {_MOST_STEPS} steps", line)

    def _pipe(self, pipe: Pipe, dot: Value) -> Value:
        value = self._command(pipe.commands[0], dot, ())
        for command in pipe.commands[1:]:
            value = self._command(command, dot, (value,))
        for name in pipe.variables:
            if pipe.declares:
                self._variables.declare(name, value)
            else:
                self._assign(name, value, pipe.line)
        return value

    def _command(self, command: Command, dot: Value, handed_on: tuple[Value, ...]) -> Value:
        self._step(command.line)
        first, *arguments = command.operands
        if isinstance(first, Function):
            return self._call(first.name, arguments, dot, handed_on, command.line)
        if arguments or handed_on:
            raise TemplateError("only a function takes arguments", command.line)
        if isinstance(first, Nil):
            raise TemplateError("nil is not a command", command.line)
        return self._value(first, dot, command.line)

    def _call(
        self, name: str, operands: Sequence[Operand], dot: Value, handed_on: tuple[Value, ...], line: int
    ) -> Value:
        arguments = (self._value(operand, dot, line) for operand in operands)
        if name in ("and", "or"):
            if not (operands or handed_on):
                raise TemplateError(f"{name} takes at least 1 argument, got 0", line)
            return _first_deciding(name, itertools.chain(arguments, handed_on))
        values = (*arguments, *handed_on)
        value = _at_line(line, call, name, values)
        made = len(value) if isinstance(value, str) else 0
        if made > _LONGEST:
            raise TemplateError(f"{name} returns a string of more than {_LONGEST} characters", line)
        read = sum(len(value) for value in values if isinstance(value, str))
        self._step(line, (read + made) // _CHARACTERS_PER_STEP)
        return value

    def _value(self, operand: Operand, dot: Value, line: int) -> Value:
        match operand:
            case Field() | Variable() | Chain():
                return self._fields(operand, dot, line)
            case Function():
                return self._call(operand.name, (), dot, (), line)
            case Pipe():
                with self._deeper(operand.line):
                    return self._pipe(operand, dot)
            case Literal():
                return operand.value
            case Dot():
                return dot
            case Nil():
                return None

    def _fields(self, operand: Field | Variable | Chain, dot: Value, line: int) -> Value:
        value = dot
        if isinstance(operand, Variable):
            self._require(operand.name, line)
            value = self._variables[operand.name]
        elif isinstance(operand, Chain):
            with self._deeper(line):
                value = self._pipe(operand.operand, dot)
        for name in operand.names:
            value = _at_line(line, field_of, value, name)
        return value


def _first_deciding(name: str, arguments: Iterable[Value]) -> Value:
    """Return the value of `and` or `or`: the first that decides, or the last. Later arguments are not evaluated."""
    found: Value = None
    for found in arguments:
        if is_true(found) is (name == "or"):
            break
    return found


def _elements(value: Value, pipe: Pipe) -> Iterable[tuple[Value, Value]]:
    """Return the keys and values that `range` iterates over: of maps in the order of keys, of lists, of integers."""
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


def _at_line(line: int, function: Callable[_P, _R], *arguments: _P.args, **options: _P.kwargs) -> _R:
    """Return what the function returns; a value that does not fit is an error with this line of the template."""
    try:
        return function(*arguments, **options)
    except UnfitValueError as e:
        raise TemplateError(str(e), line) from e
