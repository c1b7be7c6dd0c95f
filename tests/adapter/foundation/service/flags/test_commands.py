"""The help and the environment variables of every command of both programs."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.commands.table import COMMANDS as ADAPTER
from adapter.foundation.service.flags.help import help_text
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.service.flags.program import Program, ProgramCommand, run_program, usage
from adapter.foundation.service.flags.table import INTEGER, TEXT, CommandFlags, Flag, FlagValues, Works, switch
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.kubectl.table import COMMANDS as PLUGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = {"adapter": ADAPTER, "recommender": RECOMMENDER, "plugin": PLUGIN}
OTHER_PROGRAMS_FLAGS = {"query.lookback-delta", "expander", "grpc-expander-url", "grpc-expander-cert", "help"}
each_command = pytest.mark.parametrize(
    "command",
    [
        pytest.param(program.load(name).flags, id=f"{program.name} {name}")
        for program in PROGRAMS.values()
        for name in program.commands
    ],
)


def examples(command: CommandFlags) -> list[list[str]]:
    """Return the command lines that help shows, as a shell splits them."""
    (shown,) = re.findall(r"\n\nExamples:\n(.*?)\n\n", help_text(command), flags=re.DOTALL)
    return [shlex.split(example) for example in shown.replace("\\\n", " ").splitlines()]


@each_command
def test_help_fits_a_terminal(command: CommandFlags) -> None:
    for text in (help_text(command), help_text(command, all_flags=True)):
        assert [line for line in text.splitlines() if len(line) > 80] == []


@each_command
def test_help_names_only_flags_that_the_command_has(command: CommandFlags) -> None:
    shown = re.sub(r"`[^`]*`", "", help_text(command))
    named = {name.rstrip(".") for name in re.findall(r"(?<![\w-])--([\w][\w.-]*)", shown)}
    known = {*command.by_name, *OTHER_PROGRAMS_FLAGS}
    assert [name for name in named if not any(flag == name or flag.startswith(f"{name}-") for flag in known)] == []


@each_command
def test_every_refused_value_of_a_flag_is_reported_with_what_to_write(command: CommandFlags) -> None:
    repairs = re.compile(r": (write|name|did you mean) ")
    refused: list[str] = []
    for flag in command.flags:
        for text in ("", "x", "-1", "nan", "1e999", "5 minutes", "::1:80", "99999", "1,x"):
            try:
                flag.kind.parse(text)
            except ValueError as error:
                refused.append(f"--{flag.name}: {error}")
    assert [message for message in refused if not repairs.search(message)] == []


@each_command
def test_help_says_which_flags_are_required(command: CommandFlags) -> None:
    required = [flag.name for flag in command.flags if flag.required]
    assert (
        re.findall(r"  (?:-\w, )?--([\w-]+)(?: \S+)?\n(?: {8}.*\n)*? {8}.*\(required\)", help_text(command)) == required
    )


def test_a_default_of_zero_is_shown_as_any_other() -> None:
    flags = (Flag("seed", INTEGER, "Seed.", default=0), switch("dry-run", "Write nothing."))
    shown = help_text(CommandFlags(program="tool", summary="", flags=flags))
    assert "Seed. (default 0)" in shown
    assert "Write nothing.\n" in shown


@each_command
def test_no_line_of_an_example_ends_inside_quotes(command: CommandFlags) -> None:
    (shown,) = re.findall(r"\n\nExamples:\n(.*?)\n\n", help_text(command), flags=re.DOTALL)
    for line in shown.splitlines():
        assert shlex.split(line.removesuffix("\\")), line


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_help_of_a_program_fits_a_terminal(name: str) -> None:
    assert [line for line in usage(PROGRAMS[name]).splitlines() if len(line) > 80] == []


@each_command
def test_help_shows_two_examples_that_the_command_accepts(command: CommandFlags) -> None:
    shown = examples(command)
    assert len(shown) == 2
    for program, name, *arguments in shown:
        assert f"{program} {name}" == command.program
        assert parse_flags(command, arguments, {}).warnings == ()


@each_command
def test_the_variable_shown_in_help_sets_the_flag_it_names(command: CommandFlags) -> None:
    ((variable, value, name, same),) = re.findall(r"\n  (\w+)=(\S+) is --([\w-]+)=(\S+)\n", help_text(command))
    arguments = next(words for _, _, *words in examples(command) if f"--{name}" not in words)
    by_variable = parse_flags(command, arguments, {variable: value})
    by_flag = parse_flags(command, [*arguments, f"--{name}={same}"], {})
    assert name in by_variable.given
    assert by_variable.values == by_flag.values


@each_command
def test_help_lists_flags_with_an_effect_and_help_all_lists_every_flag(command: CommandFlags) -> None:
    working = {flag.name for flag in command.flags if isinstance(flag.state, Works)}
    assert _flags_in_help(help_text(command)) == working
    assert _flags_in_help(help_text(command, all_flags=True)) == set(command.by_name)
    assert ("--help=all" in help_text(command)) is (len(working) < len(command.flags))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(flags, id=flags.program)
        for program in PROGRAMS.values()
        for flags in (program.load(name).flags for name in program.commands)
        if "output" in flags.by_name
    ],
)
def test_text_and_table_are_both_accepted_as_output_format(command: CommandFlags) -> None:
    for name in ("text", "table"):
        assert command.by_name["output"].kind.parse(name) == name


def _flags_in_help(text: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?--([\w-]+)", text, flags=re.MULTILINE))


def program_of(ran: list[FlagValues], environment: dict[str, str]) -> Program:
    """Return a program with two commands that record the values they run with."""

    def load(name: str) -> ProgramCommand:
        flags = CommandFlags(
            program=f"tool {name}",
            summary="",
            flags=(Flag("url", TEXT, default="u"), Flag(f"{name}-only", TEXT)),
        )

        def run(arguments: Sequence[str]) -> None:
            ran.append(parse_flags(flags, arguments, environment))

        return ProgramCommand(flags, run)

    return Program(name="tool", summary="", commands={"serve": "", "check": ""}, load=load)


def test_variables_of_other_commands_of_the_program_have_no_effect() -> None:
    ran: list[FlagValues] = []
    environment = {"TIDEWATCH_FLAG_SERVE_ONLY": "a", "TIDEWATCH_FLAG_URL": "b", "PATH": "/bin"}
    run_program(program_of(ran, environment), ["check"], environment)
    (values,) = ran
    assert values.given == {"url"}


def test_a_variable_that_belongs_to_no_command_is_an_error() -> None:
    environment = {"TIDEWATCH_FLAG_SERVE_ONLI": "a"}
    with pytest.raises(UsageError, match="unknown environment variable TIDEWATCH_FLAG_SERVE_ONLI"):
        run_program(program_of([], environment), ["check"], environment)


def test_a_variable_that_shares_only_the_prefix_gets_no_suggestion() -> None:
    environment = {"TIDEWATCH_FLAG_FOO": "a"}
    with pytest.raises(UsageError, match="unknown environment variable TIDEWATCH_FLAG_FOO: see --help for the flags"):
        run_program(program_of([], environment), ["check"], environment)


@pytest.mark.parametrize("variable", ["TIDEWATCH_FLAG_SERVE_ONLI", "TIDEWATCH_FLAG_ABSENT_ONLY"])
def test_an_unknown_variable_is_an_error_although_a_command_cannot_be_loaded(variable: str) -> None:
    environment = {variable: "a", "TIDEWATCH_FLAG_SERVE_ONLY": "b"}
    whole = program_of([], environment)

    def load(name: str) -> ProgramCommand:
        if name == "absent":
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
        return whole.load(name)

    program = replace(whole, commands={"absent": "", **whole.commands}, load=load)
    with pytest.raises(UsageError, match=f"unknown environment variable {variable}"):
        run_program(program, ["check"], environment)
    assert environment == {variable: "a"}
