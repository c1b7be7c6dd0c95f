"""Evaluates the pipelines of a template, by the rules of Go's `text/template/exec.go`, and counts what that costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from adapter.metrics.rulebook.gotemplate.errors import TemplateError
from adapter.metrics.rulebook.gotemplate.functions import call
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
from adapter.metrics.rulebook.gotemplate.values import UnfitValueError, Value, field_of, is_true
from adapter.metrics.rulebook.gotemplate.variables import Variables

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MOST_STEPS: Final = 20_000
"""Limit on commands, outputs and iterations of `range`; this many take a fifth of a second."""
_CHARACTERS_PER_STEP: Final = 100
"""Characters in the arguments and the value of a function that count as one more step."""
LONGEST_CHARACTERS: Final = 1 << 20
"""Limit on the characters of the output, and on those of a function's value."""
_DEEPEST: Final = 100
"""Limit on nested control words, parentheses and templates during execution; Go allows 100,000."""


class PipeEvaluator:
    """The variables of one execution of a template, and what it has cost so far."""

    def __init__(self, data: Value) -> None:
        self.variables: Variables[Value] = Variables(data)
        self._steps = 0
        self._depth = 0

    @contextmanager
    def deeper(self, line: int) -> Iterator[None]:
        """Enter one more level of the template; raises TemplateError."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TemplateError(f"more than {_DEEPEST} levels: check whether a template calls itself", line)
        try:
            yield
        finally:
            self._depth -= 1

    def assign(self, name: str, value: Value, line: int) -> None:
        """Change a variable; raises TemplateError."""
        self._require(name, line)
        self.variables[name] = value

    def _require(self, name: str, line: int) -> None:
        if name not in self.variables:
            raise TemplateError(f"the variable {name} is not set here", line)

    def step(self, line: int, steps: int = 1) -> None:
        """Count steps of the execution. Raises TemplateError if there are too many."""
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise TemplateError(f"more than {_MOST_STEPS} steps", line)

    def value(self, pipe: Pipe, dot: Value) -> Value:
        """Return the value of a pipeline, and set the variables that it names; raises TemplateError."""
        value = self._command(pipe.commands[0], dot, ())
        for command in pipe.commands[1:]:
            value = self._command(command, dot, (value,))
        for name in pipe.variables:
            if pipe.declares:
                self.variables.declare(name, value)
            else:
                self.assign(name, value, pipe.line)
        return value

    def _command(self, command: Command, dot: Value, handed_on: tuple[Value, ...]) -> Value:
        self.step(command.line)
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
        value = at_line(line, call, name, values)
        made = len(value) if isinstance(value, str) else 0
        if made > LONGEST_CHARACTERS:
            raise TemplateError(f"{name} returns a string of more than {LONGEST_CHARACTERS} characters", line)
        read = sum(len(value) for value in values if isinstance(value, str))
        self.step(line, (read + made) // _CHARACTERS_PER_STEP)
        return value

    def _value(self, operand: Operand, dot: Value, line: int) -> Value:
        match operand:
            case Field() | Variable() | Chain():
                return self._fields(operand, dot, line)
            case Function():
                return self._call(operand.name, (), dot, (), line)
            case Pipe():
                with self.deeper(operand.line):
                    return self.value(operand, dot)
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
            value = self.variables[operand.name]
        elif isinstance(operand, Chain):
            with self.deeper(line):
                value = self.value(operand.operand, dot)
        for name in operand.names:
            value = at_line(line, field_of, value, name)
        return value


def _first_deciding(name: str, arguments: Iterable[Value]) -> Value:
    """Return the first argument that decides `and` or `or`, or else the last one. Later ones are not evaluated."""
    found: Value = None
    for found in arguments:
        if is_true(found) is (name == "or"):
            break
    return found


def at_line(line: int, function: Callable[_P, _R], *arguments: _P.args, **options: _P.kwargs) -> _R:
    """Return what the function returns; a value that does not fit is a TemplateError that names this line."""
    try:
        return function(*arguments, **options)
    except UnfitValueError as e:
        raise TemplateError(str(e), line) from e
