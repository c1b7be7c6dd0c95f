"""The table of a command's flags: the type, default and state of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import TypeAlias, TypeVar

from adapter.foundation.objects.durations import format_go_duration, parse_duration
from adapter.foundation.service.server.addresses import Address, parse_address, parse_host, parse_port

T = TypeVar("T")

ENVIRONMENT_PREFIX = "TIDEWATCH_FLAG_"
"""The prefix of the environment variables that set flags."""
OBJECT = "OBJECT"
"""Name of the argument that is KIND/NAME."""

_INTEGER = re.compile(r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|[1-9](?:_?[0-9])*|0)")
_OLD_OCTAL = re.compile(r"^([+-]?)0(?=_?[0-7])")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a flag: how its text becomes a value."""

    placeholder: str
    parse: Callable[[str], object]
    """Parses the text; raises ValueError with what to write instead."""
    show: Callable[[object], str] = str
    choices: tuple[str, ...] = ()
    """All values that it accepts, if there are only a few."""


class Repeat(Enum):
    """The meaning of a flag that is given more than once."""

    LAST = auto()
    """The last occurrence is used."""
    EACH = auto()
    """Each occurrence is a value; in an environment variable, each line is one."""
    COMMAS = auto()
    """Each occurrence is one or more values with commas between them."""


@dataclass(frozen=True, slots=True)
class Works:
    """The flag does what its help says."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """The flag is accepted, with one warning that says why it has no effect."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The flag is an error: what it asks for is not supported, and ignoring it would surprise the user."""

    reason: str


State: TypeAlias = Works | Ignored | Refused


@dataclass(frozen=True, slots=True)
class Flag:
    """One row of the table."""

    name: str
    """Name without the dashes."""
    kind: Kind
    help: str = ""
    _: KW_ONLY
    default: object = None
    """Default value; None for unset. A repeated flag has a tuple."""
    group: str = "Flags"
    state: State = Works()
    repeat: Repeat = Repeat.LAST
    short: str = ""
    """Short name of one letter, for `-v 4`, `-v=4`, `-v4`."""
    required: bool = False
    may_hold_secret: bool = False
    """Whether the value, or the part of it behind an unquoted space, may be a secret."""


def switch(name: str, text: str = "", *, state: State = Works()) -> Flag:
    """Return a boolean flag that is false unless it is set."""
    return Flag(name, BOOLEAN, text, default=False, state=state)


def in_group(group: str, *flags: Flag) -> tuple[Flag, ...]:
    """Return the flags under one heading of `--help`."""
    return tuple(replace(flag, group=group) for flag in flags)


@dataclass(frozen=True, slots=True)
class FlagValues:
    """The values of a command's flags: immutable, with a typed accessor for each kind."""

    values: Mapping[str, object]
    given: frozenset[str]
    """Names that were set, by the command line or the environment."""
    arguments: tuple[str, ...]
    """Words that are not flags."""
    warnings: tuple[str, ...]
    """One warning for each flag that was set and has no effect, and one for surplus words."""

    def text(self, name: str) -> str:
        """Return the value of a text flag; empty if it is not set."""
        value = self.values[name]
        return "" if value is None else self._typed_value(name, value, str)

    def path(self, name: str) -> Path | None:
        """Return the value of a path flag; None if it is not set, or set to an empty text."""
        value = self.values[name]
        return None if value is None else self._typed_value(name, value, Path)

    def boolean(self, name: str) -> bool:
        """Return the value of a boolean flag."""
        return self._typed_value(name, self.values[name], bool)

    def integer(self, name: str) -> int:
        """Return the value of an integer flag."""
        return self._typed_value(name, self.values[name], int)

    def number(self, name: str) -> float | None:
        """Return the value of a number flag; None if it is not set."""
        value = self.values[name]
        return None if value is None else self._typed_value(name, value, float)

    def seconds(self, name: str) -> float:
        """Return the value of a duration flag, in seconds."""
        value = self.values[name]
        return float(value) if isinstance(value, int) else self._typed_value(name, value, float)

    def address(self, name: str) -> Address | None:
        """Return the value of an address flag; None if it is not set."""
        value = self.values[name]
        return None if value is None else self._typed_value(name, value, Address)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the values of a repeated text flag."""
        return tuple(self._typed_value(name, value, str) for value in self._typed_value(name, self.values[name], tuple))

    def paths(self, name: str) -> tuple[Path, ...]:
        """Return the values of a repeated path flag, without empty ones."""
        values = self._typed_value(name, self.values[name], tuple)
        return tuple(self._typed_value(name, value, Path) for value in values if value is not None)

    def _typed_value(self, name: str, value: object, kind: type[T]) -> T:
        if not isinstance(value, kind):
            raise TypeError(f"--{name} is {type(value).__name__}, read as {kind.__name__}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFlags:
    """The flags and arguments of one command."""

    program: str
    """The program and its command as typed, as in `PROGRAM serve`."""
    summary: str
    flags: tuple[Flag, ...]
    examples: tuple[str, ...] = ()
    """Command lines for `--help`, which run as written if the files that they name exist."""
    arguments: tuple[str, ...] = ()
    """Names of the arguments that are not flags; all are required."""
    passes_over_more: bool = False
    """Whether further words that are not flags cause a warning; otherwise they are an error."""

    @property
    def by_name(self) -> dict[str, Flag]:
        """The flags by name."""
        return {flag.name: flag for flag in self.flags}


def variable_of(flag: Flag) -> str:
    """Return the environment variable that sets a flag."""
    return ENVIRONMENT_PREFIX + flag.name.upper().replace("-", "_")


def one_of(*choices: str) -> Kind:
    """Return the kind of a flag whose value is one of a few texts."""
    listed = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is not allowed: write {listed}")
        return text

    return Kind("|".join(choices), parse, choices=choices)


def _path(text: str) -> Path | None:
    """Return the path; None for an empty text, by which charts mean "none" but `Path` means the folder `.`."""
    return Path(text) if text else None


def _boolean(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise ValueError(f"{text!r} is not a boolean: write true or false")
    return text in _TRUE


def _integer(text: str) -> int:
    """Return the number as Go's flags read it: `0x10` and `0b11` are other bases, and so is `010`, which is 8."""
    stated = text.strip()
    try:
        if _INTEGER.fullmatch(stated):
            return int(_OLD_OCTAL.sub(r"\g<1>0o", stated), 0)
    except ValueError:
        # Python reads no more than some thousand digits.
        pass
    raise ValueError(f"{text!r} is not a whole number: write one such as 10")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number: write one such as 2.5") from None
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a finite number: write one such as 2.5")
    return number


def _value_text(value: object) -> str:
    return "true" if value is True else "false" if value is False else str(value)


TEXT = Kind("TEXT", str)
PATH = Kind("PATH", _path)
BOOLEAN = Kind("", _boolean, _value_text)
INTEGER = Kind("NUMBER", _integer)
NUMBER = Kind("NUMBER", _number)
PORT = Kind("PORT", parse_port)
DURATION = Kind("DURATION", parse_duration, lambda seconds: format_go_duration(float(str(seconds))))
ADDRESS = Kind("HOST:PORT", parse_address)
HOST = Kind("HOST", parse_host)
