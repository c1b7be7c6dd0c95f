"""The scripts match the current flags, the wheel installs all of them, and a shell completes with them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest

from adapter.commands.table import COMMANDS as ADAPTER
from adapter.foundation.service.flags.table import BOOLEAN, Works
from completions.parsers import first_sentence
from completions.scripts import scripts
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.kubectl.table import COMMANDS as PLUGIN
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.service.flags.program import Program

FOLDER = CHECKOUT / "completions"
PROGRAMS = {program.name: program for program in (ADAPTER, RECOMMENDER, PLUGIN)}
COMMANDS = [(program, name) for program in PROGRAMS for name in PROGRAMS[program].commands]
COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
registered=$(complete -p "$1")
[[ $registered =~ -F\\ ([^ ]+) ]]
"${BASH_REMATCH[1]}" "$1" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words: str, folder: Path = CHECKOUT) -> list[str]:
    """Return what bash offers for the last word, using the function that the script registers for the program."""
    script = str(FOLDER / f"{words[0]}.bash")
    command = ["bash", "--norc", "--noprofile", "-c", COMPLETE, "bash", script, *words]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.split()


def test_the_scripts_are_those_of_the_present_flags() -> None:
    made = scripts()
    present = {path.name: path.read_text() for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"}
    assert sorted(present) == sorted(made)
    assert [name for name in made if present[name] != made[name]] == [], "run python -m completions"


def test_the_wheel_installs_each_script_where_its_shell_looks() -> None:
    wheel = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    places = {}
    for program in PROGRAMS:
        places[f"completions/{program}.bash"] = f"share/bash-completion/completions/{program}"
        places[f"completions/_{program}"] = f"share/zsh/site-functions/_{program}"
        places[f"completions/{program}.fish"] = f"share/fish/vendor_completions.d/{program}.fish"
    places["completions/man1"] = "share/man/man1"
    assert wheel["shared-data"] == places
    assert wheel["packages"] == ["adapter", "recommender"]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_bash_completes_the_commands(program: Program) -> None:
    assert completed(program.name, "") == list(program.commands)
    assert completed(program.name, "--v") == ["--version"]


@pytest.mark.parametrize(("program", "name"), COMMANDS)
def test_bash_completes_the_flags_that_have_an_effect_and_no_others(program: str, name: str) -> None:
    flags = PROGRAMS[program].load(name).flags.flags
    working = {f"--{flag.name}" for flag in flags if isinstance(flag.state, Works)}
    assert set(completed(program, name, "--")) == working | {"--help", "--version"}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("tidewatch-adapter", "ser"), ["serve"]),
        (("tidewatch-adapter", "serve", "--prometheus-u"), ["--prometheus-url", "--prometheus-username"]),
        (("tidewatch-adapter", "serve", "--prometheus-ur"), ["--prometheus-url"]),
        (("tidewatch-adapter", "serve", "--prometheus-verb", ""), ["GET", "POST"]),
        (("tidewatch-adapter", "serve", "--prometheus-verb", "P"), ["POST"]),
        # bash hands these over as it splits --prometheus-verb=P.
        (("tidewatch-adapter", "serve", "--prometheus-verb", "="), ["GET", "POST"]),
        (("tidewatch-adapter", "serve", "--prometheus-verb", "=", "P"), ["POST"]),
        (("tidewatch-adapter", "serve", "--prometheus-verb", "=", "GET", "--on-no-data", "=", "em"), ["empty"]),
        (("tidewatch-adapter", "serve", "--pin-cpu", "--prometheus-ver"), ["--prometheus-verb"]),
        (("tidewatch-adapter", "check", "-o", "j"), ["json"]),
        (("tidewatch-recommender", "rec"), ["recommend"]),
        (("kubectl-tidewatch", "why", "-o", "y"), ["yaml"]),
        (("tidewatch-recommender", "backtest", "--missing", ""), ["gap", "zero"]),
        (("tidewatch-recommender", "run", "--config", "=", "pol"), ["policy.yaml"]),
        (("tidewatch-recommender", "run", "--config", "pol"), ["policy.yaml"]),
        (("tidewatch-recommender", "run", "--port", ""), []),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_flags_and_values(words: tuple[str, ...], offered: list[str], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").touch()
    assert completed(*words, folder=tmp_path) == offered


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_zsh_accepts_a_value_after_an_equals_sign_for_each_flag_with_a_value(program: Program) -> None:
    text = (FOLDER / f"_{program.name}").read_text()
    loaded = [flag for name in program.commands for flag in program.load(name).flags.flags]
    working = [flag for flag in loaded if isinstance(flag.state, Works)]
    for flag in working:
        specified = re.findall(rf'--{flag.name}(=?)\}}?"?\[', text)
        assert specified == ["" if flag.kind is BOOLEAN else "="] * sum(one.name == flag.name for one in working)


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_syntax_of_the_scripts_is_that_of_their_shell(program: str, shell: str, check: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = FOLDER / (f"_{program}" if shell == "zsh" else f"{program}.{shell}")
    run = subprocess.run([shell, check, script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Serving certificate; a renewed file takes effect.", "Serving certificate; a renewed file takes effect"),
        ("The file. Without one, defaults.", "The file"),
        ("Lowest TLS version; versions below 1.2 are raised.", "Lowest TLS version; versions below 1.2 are raised"),
        ("", ""),
    ],
)
def test_the_first_sentence_describes_a_flag(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@pytest.mark.parametrize("program", PROGRAMS)
def test_fish_offers_files_behind_an_equals_sign(program: str) -> None:
    # __fish_complete_path would look for a file whose name begins with --config=.
    script = (FOLDER / f"{program}.fish").read_text()
    assert "__fish_complete_path" not in script
    assert re.search(rf"^complete -c {program} .*-l config -rF -d ", script, re.MULTILINE)
