"""The scripts, by the names of their files."""

from __future__ import annotations

import re
from string import Template
from typing import TYPE_CHECKING, Final

import shtab

from completions.parsers import parser_of
from completions.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.flags.program import Program

_BASH_VALUES: Final = Template("""

# bash splits --flag=VALUE into three words, which are completed as --flag VALUE is.
_$function() {
  local -a words=()
  local index position=$$COMP_CWORD
  for index in "$${!COMP_WORDS[@]}"; do
    if [[ "$${COMP_WORDS[index]}" != "=" || "$${COMP_WORDS[index-1]}" != --* ]]; then
      words+=("$${COMP_WORDS[index]}")
    elif [[ $$index -eq $$COMP_CWORD ]]; then
      words+=("") # nothing of the value is there yet
    elif [[ $$index -lt $$COMP_CWORD ]]; then
      position=$$(( position - 1 ))
    fi
  done
  local -a COMP_WORDS=("$${words[@]}")
  local COMP_CWORD=$$position
  _shtab_$function "$$@"
}

complete -o bashdefault -F _$function $program
""")
"""What shtab lacks in bash: a value behind an equals sign."""

_ZSH_VALUE: Final = re.compile(r"""^(  (?:"\*?|(?:"\*")?\{-\w,)--[\w-]+)(\}?"?\[(?:[^]\\]|\\.)*\]:)""", re.MULTILINE)
"""What shtab lacks in zsh likewise. A flag with a value, up to its name and behind it, is `"--name[help]:…` or
`{-n,--name}"[help]:…`; zsh takes the value as a part of the word if there is an equals sign between the two."""

_FISH_FILE: Final = '-xka "(__fish_complete_path (commandline -ct))"'
"""How shtab names files as the values of a flag in fish, which then offers none behind an equals sign. fish's own files
are offered there, too."""


def scripts() -> Mapping[str, str]:
    """Return the script of each program for each shell, by the name of its file."""
    return {name: text for program in PROGRAMS for name, text in _scripts_of(program).items()}


def _scripts_of(program: Program) -> Mapping[str, str]:
    parser = parser_of(program)
    values = _BASH_VALUES.substitute(function=program.name.replace("-", "_"), program=program.name)
    texts = {
        f"{program.name}.bash": shtab.complete(parser, "bash") + values,
        f"_{program.name}": _ZSH_VALUE.sub(r"\1=\2", shtab.complete(parser, "zsh")),
        f"{program.name}.fish": shtab.complete(parser, "fish").replace(_FISH_FILE, "-rF"),
    }
    return {name: _without_trailing_blanks(text) for name, text in texts.items()}


def _without_trailing_blanks(text: str) -> str:
    """Return a text without blanks at the ends of its lines, and with one line end at its own."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"
