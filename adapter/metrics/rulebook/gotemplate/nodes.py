"""The tree of a template, which the parser builds and the evaluator walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Text that is output as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`: the current value."""


@dataclass(frozen=True, slots=True)
class Nil:
    """`nil`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number or boolean."""

    value: str | bool | int | float


@dataclass(frozen=True, slots=True)
class Field:
    """`.A.B`: a field of the current value."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x` or `$x.A.B`: a variable, or a field of its value."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """`(…).A.B`: a field of the value in parentheses."""

    operand: Pipe
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """The name of a function."""

    name: str


Operand: TypeAlias = "Dot | Nil | Literal | Field | Variable | Chain | Function | Pipe"


@dataclass(frozen=True, slots=True)
class Command:
    """A function with its arguments, or a single value."""

    operands: tuple[Operand, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Pipe:
    """Commands, each of which gets the value of the previous one as its last argument."""

    commands: tuple[Command, ...]
    line: int
    variables: tuple[str, ...] = ()
    """Variables that are set to the value; two of them only in `range`."""
    declares: bool = False
    """Whether the variables are declared (`:=`) rather than assigned (`=`)."""


@dataclass(frozen=True, slots=True)
class Action:
    """A pipeline whose value is output, unless it sets a variable."""

    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Control:
    """A control word with its branches, up to `end`."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]
    """The `else` branch; empty without one."""


class If(Control):
    """`if` with its optional `else`."""


class With(Control):
    """`with`: like `if`, except that inside it, the pipeline's value is the current value."""


class Range(Control):
    """`range`: the body once for each element, or the `else` branch if there is none."""


@dataclass(frozen=True, slots=True)
class Break:
    """`break`: leaves the innermost `range`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """`continue`: continues with the next element of the innermost `range`."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """`template`: another template, executed on the pipeline's value, or on nothing."""

    name: str
    pipe: Pipe | None
    line: int


Node: TypeAlias = "Text | Action | If | With | Range | Break | Continue | Invocation"
