"""The manual pages match the current flags, say all that `--help` says, and `man` can print them."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.flags.help import names_of, notes_of
from adapter.foundation.service.flags.table import Works
from completions.manual_pages import manual_pages, page_name
from completions.programs import PROGRAMS
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.flags.program import Program

FOLDER = CHECKOUT / "completions" / "man1"
COMMANDS = [
    pytest.param(program, name, id=page_name(program, name)) for program in PROGRAMS for name in program.commands
]
REQUESTS = {
    "TH",
    "SH",
    "TP",
    "B",
    "sp",
    "INDENT",
    "UNINDENT",
    "EX",
    "EE",
    "nr",
    "de",
    "de1",
    "in",
    "RE",
    "nf",
    "fi",
    "ft",
}
UNICODE = re.compile(r"\\\[u([0-9A-F]{4,})\]")


@cache
def pages() -> Mapping[str, str]:
    return manual_pages()


def plain(roff: str) -> str:
    """Return a text without fonts and escapes, on one line."""
    text = re.sub(r"\\f[A-Z]", "", roff).replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`")
    text = UNICODE.sub(lambda found: chr(int(found[1], 16)), text.replace("\\(dq", '"').replace("\\&", ""))
    return " ".join(text.replace("\\e", "\\").split())


def test_the_pages_are_those_of_the_present_flags() -> None:
    present = {path.name: path.read_text() for path in FOLDER.iterdir()}
    assert present == pages(), "run python -m completions"


@pytest.mark.parametrize(("program", "name"), COMMANDS)
def test_a_page_has_each_flag_with_the_text_of_its_help(program: Program, name: str) -> None:
    roff = pages()[f"{page_name(program, name)}.1"]
    command, text = program.load(name).flags, plain(roff)
    for flag in command.flags:
        heading = ", ".join(f"\\fB{each}\\fP" for each in names_of(flag)).replace("-", "\\-")
        assert (f".B {heading}" in roff) == isinstance(flag.state, Works), flag.name
        assert not isinstance(flag.state, Works) or " ".join(notes_of(flag).split()) in text, flag.name
    assert all(" ".join(example.split()) in text for example in command.examples)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_page_of_a_program_leads_to_those_of_its_commands(program: Program) -> None:
    text = plain(pages()[f"{program.name}.1"])
    for name, summary in program.commands.items():
        assert f"{name} {summary}" in text
        assert f"{page_name(program, name)}(1)" in text


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_no_text_is_read_as_a_roff_request(name: str) -> None:
    roff = pages()[name]
    assert roff.isascii()
    requests = {line[1:].split()[0] for line in roff.splitlines() if line.startswith(".") and line[1:2].isalpha()}
    assert requests <= REQUESTS
    assert not [line for line in roff.splitlines() if line.startswith("'")]


@pytest.mark.skipif(shutil.which("groff") is None and shutil.which("mandoc") is None, reason="nothing here reads roff")
def test_man_prints_no_warning() -> None:
    files = sorted(map(str, FOLDER.iterdir()))
    lint = (
        ["groff", "-man", "-Tutf8", "-ww", "-z"] if shutil.which("groff") else ["mandoc", "-T", "lint", "-W", "error"]
    )
    found = subprocess.run([*lint, *files], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
