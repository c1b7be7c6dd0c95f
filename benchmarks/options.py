"""The command lines of benchmarks: `python -m benchmarks.NAME --help`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def command_line(name: str, doc: str | None) -> ArgumentParser:
    """Return a parser that knows `-o`, as all commands do; its help begins with the docstring's first line."""
    parser = ArgumentParser(prog=f"python -m benchmarks.{name}", description=(doc or "").partition("\n")[0])
    parser.add_argument("-o", "--output", choices=("table", "text", "json"), default="table")
    return parser


def between(least: int, most: int) -> Callable[[str], int]:
    """Return a function that reads a whole number of this range from the command line."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ArgumentTypeError(f"{value} is not between {least} and {most}")
        return value

    return number
