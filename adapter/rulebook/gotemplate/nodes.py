"""The tree of a template: what the parser makes of tokens, and what the evaluator walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Text that goes out as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """`.`: the value that is looked at just now."""


@dataclass(frozen=True, slots=True)
class Nil:
    """`nil`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, number or boolean that the template spells out."""

    value: str | bool | int | float


@dataclass(frozen=True, slots=True)
class Field:
    """`.A.B`: a field of the value that is looked at."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """`$x`, `$x.A.B`."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """`(…).A.B`: fields of what parentheses give."""

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
    """Commands, each of which gets the value of the one before as its last argument."""

    commands: tuple[Command, ...]
    line: int
    variables: tuple[str, ...] = ()
    """Set to the pipeline's value; two of them only in `range`."""
    declares: bool = False
    """`:=` rather than `=`."""


@dataclass(frozen=True, slots=True)
class Action:
    """A pipeline whose value goes out, unless it sets a variable."""

    pipe: Pipe


@dataclass(frozen=True, slots=True)
class If:
    """`if`, `else`, `end`."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class With:
    """`with`: as `if`, and the value is looked at inside."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`range`: the body once for each element, or the other branch if there is none."""

    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Leaves the nearest `range`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Goes on with the next element of the nearest `range`."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """`template`: another template, executed on the pipeline's value, or on nothing."""

    name: str
    pipe: Pipe | None
    line: int


Node: TypeAlias = "Text | Action | If | With | Range | Break | Continue | Invocation"
