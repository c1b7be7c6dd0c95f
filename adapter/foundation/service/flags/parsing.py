"""Parses flags as Go programs do, driven by a table.

prometheus-adapter's command lines must run unchanged: `--flag=value` and `--flag value`, booleans alone or with
`=false`, words joined by `-` or `_`, and Go's durations. Every flag can also be set by an environment variable
(`TIDEWATCH_FLAG_REFRESH_INTERVAL=5s`); the command line wins. An error is one line that says what to write instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn, TypeAlias

from adapter.foundation.documents.tree import nearest_word, problem_lines
from adapter.foundation.service.flags.help import help_text
from adapter.foundation.service.flags.table import (
    BOOLEAN,
    ENVIRONMENT_PREFIX,
    OBJECT,
    CommandFlags,
    Flag,
    FlagValues,
    Ignored,
    Refused,
    Repeat,
    Works,
    variable_of,
)
from adapter.foundation.service.runtime.errors import UsageError
from adapter.foundation.service.version import program_version

__all__ = ["HelpRequested", "UsageError", "exit_for_usage", "flags_or_exit", "parse_flags"]


_VERSION: Final = "version"


class HelpRequested(Exception):  # noqa: N818 - no error: somebody asked
    """`--help` or `--version` was given; `text` is what to print. Exit status 0."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def parse_flags(command: CommandFlags, arguments: Sequence[str], environment: Mapping[str, str]) -> FlagValues:
    """Return what the command line and the environment say; raises UsageError or HelpRequested."""
    rest: list[str] = []
    typed = [*_from_arguments(command, arguments, rest)]
    from_command_line = {flag.name for flag, _, _ in typed}
    inherited = [item for item in _from_environment(command, environment) if item[0].name not in from_command_line]
    given: dict[str, list[object]] = {}
    warnings: dict[str, str] = {}
    for flag, spelled, text in [*inherited, *typed]:
        if isinstance(flag.state, Refused):
            raise UsageError(f"{spelled} is not supported: {flag.state.reason}")
        if isinstance(flag.state, Ignored):
            warnings[flag.name] = f"{spelled} has no effect: {flag.state.reason}"
        given.setdefault(flag.name, []).extend(_parse_values(flag, spelled, text))
    _refuse_missing(command, given, rest)
    values = {flag.name: _value(flag, given.get(flag.name)) for flag in command.flags}
    known = len(command.arguments)
    all_warnings = (*warnings.values(), *_passed_over(len(rest) - known))
    return FlagValues(values, frozenset(given), tuple(rest[:known]), all_warnings)


def flags_or_exit(command: CommandFlags, arguments: Sequence[str]) -> FlagValues:
    """Return what the command line and the environment of this process say.

    Prints help and exits with status 0, or prints one line and exits with status 2.
    """
    try:
        return parse_flags(command, arguments, os.environ)
    except HelpRequested as e:
        print(e.text)  # noqa: T201 - the output of the command
        sys.exit(0)
    except UsageError as e:
        exit_for_usage(command.program, str(e))


def exit_for_usage(program: str, *problems: str) -> NoReturn:
    """Exit with status 2, after a line on stderr for each problem; each line begins with the program's name.

    If there are very many problems, only the first ones and the number of the others are shown.
    """
    name = program.split(" ", maxsplit=1)[0]
    for line in problem_lines(problems):
        print(f"{name}: {line}", file=sys.stderr)  # noqa: T201 - what a person reads
    sys.exit(2)


_Given: TypeAlias = tuple[Flag, str, str]
"""A flag, its name as the user wrote it, and its unparsed value."""


def _from_arguments(command: CommandFlags, arguments: Sequence[str], rest: list[str]) -> Iterator[_Given]:
    """Yield the flags of a command line, and append the words that are not flags to `rest`."""
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--":
            rest.extend(waiting)
        elif argument == "--help=all":
            raise HelpRequested(help_text(command, all_flags=True))
        elif argument.startswith("--"):
            name, equals, text = argument[2:].partition("=")
            if name == _VERSION:
                _show_version(command, text if equals else "true")
                continue
            flag = _find(command, name)
            yield flag, f"--{flag.name}", text if equals else _text_behind(flag, argument, waiting)
        elif argument.startswith("-") and len(argument) > 1:
            yield _short(command, argument, waiting)
        else:
            rest.append(argument)


def _show_version(command: CommandFlags, text: str) -> None:
    """Raise HelpRequested with the version, unless `--version=false` declines it."""
    try:
        is_wanted = BOOLEAN.parse(text)
    except ValueError as e:
        raise UsageError(f"--{_VERSION}: {e}") from e
    if is_wanted:
        raise HelpRequested(f"{command.program.split(' ', maxsplit=1)[0]} {program_version()}")


def _short(command: CommandFlags, argument: str, waiting: Iterator[str]) -> _Given:
    flag = next((flag for flag in command.flags if flag.short and flag.short == argument[1]), None)
    if argument == "-h":
        raise HelpRequested(help_text(command))
    if flag is None:
        raise UsageError(
            f"unknown flag {argument}: {_unknown_flag_hint(command, argument[1:].split('=', maxsplit=1)[0])}"
        )
    text = argument[2:].removeprefix("=")
    return flag, argument[:2], text or _text_behind(flag, argument, waiting)


def _text_behind(flag: Flag, argument: str, waiting: Iterator[str]) -> str:
    if flag.kind is BOOLEAN:
        return "true"
    # To ask for the value of a refused flag would be wrong: with one, it is refused too.
    text = next(waiting, "" if isinstance(flag.state, Refused) else None)
    if text is None:
        raise UsageError(f"{argument} needs a value: write {argument}={flag.kind.placeholder}")
    return text


def _find(command: CommandFlags, name: str) -> Flag:
    spelled = name.replace("_", "-")
    if spelled == "help":
        raise HelpRequested(help_text(command))
    flag = command.by_name.get(spelled)
    if flag is None:
        raise UsageError(f"unknown flag --{name}: {_unknown_flag_hint(command, spelled)}")
    return flag


def _unknown_flag_hint(command: CommandFlags, name: str) -> str:
    """Return what to do about an unknown flag; only flags that have an effect are suggested."""
    meant = nearest_word(name, (each for each, flag in command.by_name.items() if isinstance(flag.state, Works)))
    return f"did you mean --{meant}?" if meant else "see --help"


def _from_environment(command: CommandFlags, environment: Mapping[str, str]) -> Iterator[_Given]:
    by_variable = {variable_of(flag): flag for flag in command.flags}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        flag = by_variable.get(variable)
        if flag is None:
            # The names are compared without their prefix, which is the same for all.
            meant = nearest_word(
                variable.removeprefix(ENVIRONMENT_PREFIX),
                [name.removeprefix(ENVIRONMENT_PREFIX) for name in by_variable],
            )
            hint = f"did you mean {ENVIRONMENT_PREFIX}{meant}?" if meant else "see --help for the flags"
            raise UsageError(f"unknown environment variable {variable}: {hint}")
        for line in text.splitlines() if flag.repeat is Repeat.EACH else (text,):
            yield flag, variable, line


def _parse_values(flag: Flag, spelled: str, text: str) -> list[object]:
    texts = [part.strip() for part in text.split(",") if part.strip()] if flag.repeat is Repeat.COMMAS else [text]
    try:
        return [flag.kind.parse(part) for part in texts]
    except ValueError as e:
        raise UsageError(f"{spelled}: {e}") from e


def _value(flag: Flag, given: list[object] | None) -> object:
    if flag.repeat is Repeat.LAST:
        return given[-1] if given else flag.default
    return tuple(given) if given is not None else (flag.default or ())


def _as_clause(text: str) -> str:
    """Return the first sentence without its capital and its full stop; names such as NAMESPACE/NAME stay."""
    sentence = text.split(". ", maxsplit=1)[0].removesuffix(".")
    return f"{sentence[0].lower()}{sentence[1:]}" if sentence[1:2].islower() else sentence


def _refuse_missing(command: CommandFlags, given: Mapping[str, object], rest: Sequence[str]) -> None:
    for flag in command.flags:
        if flag.required and flag.name not in given:
            raise UsageError(f"--{flag.name} is required: {_as_clause(flag.help)}")
    if len(rest) > len(command.arguments) and not command.passes_over_more:
        secret = next((flag.name for flag in command.flags if flag.may_hold_secret and flag.name in given), None)
        if secret is not None:
            # The word is not shown, as it may be a part of the secret.
            raise UsageError(f"unexpected argument: quote the value of --{secret} if it contains a space")
        raise UsageError(f"unexpected argument {rest[len(command.arguments)]!r}: {_surplus_hint(command, rest)}")
    if len(rest) < len(command.arguments):
        raise UsageError(f"{command.arguments[len(rest)]} is missing: see --help")


def _surplus_hint(command: CommandFlags, words: Sequence[str]) -> str:
    """Return what the user probably meant by a surplus word."""
    word = words[len(command.arguments)]
    if command.arguments == (OBJECT,) and "/" not in words[0]:
        return f"did you mean {words[0]}/{word}?"
    if word.endswith((".yaml", ".yml")) and any(flag.name == "config" for flag in command.flags):
        return f"did you mean --config={word}?"
    return "see --help"


def _passed_over(number: int) -> Iterator[str]:
    """Yield the warning about words that are not flags, but not the words, which may be part of a secret header."""
    if number > 0:
        words = "a word that is not a flag" if number == 1 else f"{number} words that are not flags"
        yield f"the command line holds {words}, which has no effect: quote a value that contains a space"
