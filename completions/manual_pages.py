"""The manual pages, by the names of their files: one of each program, and one of each command with all its flags.

They say what `--help` says, and docutils writes them as roff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from docutils import nodes
from docutils.core import publish_from_doctree
from docutils.utils import new_document

from adapter.foundation.service.flags.help import names_of, notes_of, variables_of
from adapter.foundation.service.flags.table import Works
from adapter.foundation.service.version import program_version
from completions.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapter.foundation.service.flags.program import Program
    from adapter.foundation.service.flags.table import CommandFlags, Flag

_SECTION: Final = "1"
"""Programs that users start (man-pages(7))."""
_GROUP: Final = "Tidewatch"


def manual_pages() -> Mapping[str, str]:
    """Return the text of each page by the name of its file."""
    return {f"{name}.{_SECTION}": text for program in PROGRAMS for name, text in _pages_of(program)}


def _pages_of(program: Program) -> Iterator[tuple[str, str]]:
    commands = {name: page_name(program, name) for name in program.commands}
    yield (
        program.name,
        _page(
            program,
            program.name,
            program.summary,
            _section("Synopsis", _line(program.name, "COMMAND", "[flags]")),
            _section("Description", _paragraph(program.summary)),
            _section("Commands", _definitions((_strong(name), text) for name, text in program.commands.items())),
            _see_also(commands.values()),
        ),
    )
    for name, page in commands.items():
        flags = program.load(name).flags
        yield page, _page(program, page, program.commands[name], *_command_sections(flags), _see_also([program.name]))


def page_name(program: Program, command: str) -> str:
    """Return the name by which `man` finds the page of a command."""
    return f"{program.name}-{command}"


def _command_sections(command: CommandFlags) -> Iterator[nodes.section]:
    yield _section("Synopsis", _line(command.program, *command.arguments, "[flags]"))
    yield _section("Description", _paragraph(command.summary))
    shown = [flag for flag in command.flags if isinstance(flag.state, Works)]
    for group in dict.fromkeys(flag.group for flag in shown):
        yield _section(group, _definitions((_flag_term(flag), notes_of(flag)) for flag in shown if flag.group == group))
    if command.examples:
        yield _section("Examples", *(_literal(example) for example in command.examples))
    before, example, after = variables_of(command)
    yield _section("Environment", _paragraph(before), _literal(example), _paragraph(after))


def _flag_term(flag: Flag) -> list[nodes.Node]:
    """Return the names of a flag in bold and its value in italics."""
    found: list[nodes.Node] = []
    for name in names_of(flag):
        found += [*([nodes.Text(", ")] if found else []), nodes.strong(text=name)]
    if flag.kind.placeholder:
        found += [nodes.Text(" "), nodes.emphasis(text=flag.kind.placeholder)]
    return found


def _see_also(names: Iterable[str]) -> nodes.section:
    found: list[nodes.Node] = []
    for name in names:
        found += [*([nodes.Text(", ")] if found else []), nodes.strong(text=name), nodes.Text(f"({_SECTION})")]
    return _section("See also", nodes.paragraph("", "", *found))


def _page(program: Program, name: str, summary: str, *sections: nodes.section) -> str:
    document = new_document(name)
    document["title"] = name
    document += nodes.title(text=name)
    # What `whatis` and `apropos` print is no sentence.
    document += nodes.subtitle(text=summary.removesuffix("."))
    document += nodes.docinfo(
        "",
        nodes.version(text=f"{program.name} {program_version()}"),
        _field("manual_section", _SECTION),
        _field("manual_group", _GROUP),
    )
    document += list(sections)
    settings = {"output_encoding": "unicode", "_disable_config": True}
    text = str(publish_from_doctree(document, writer="manpage", settings_overrides=settings))  # type: ignore[no-untyped-call]
    return f"{_in_ascii(text.replace('.SH Name', '.SH NAME', 1).rstrip())}\n"


def _in_ascii(text: str) -> str:
    """Return roff that does not depend on the encoding that `man` assumes (groff_char(7))."""
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)


def _field(name: str, value: str) -> nodes.field:
    return nodes.field("", nodes.field_name(text=name), nodes.field_body("", nodes.paragraph(text=value)))


def _section(title: str, *content: nodes.Node) -> nodes.section:
    return nodes.section("", nodes.title(text=title.upper()), *content)


def _paragraph(text: str) -> nodes.paragraph:
    return nodes.paragraph(text=text)


def _literal(text: str) -> nodes.literal_block:
    return nodes.literal_block(text=text)


def _line(program: str, *rest: str) -> nodes.paragraph:
    """Return a synopsis."""
    return nodes.paragraph("", "", *_strong(program), nodes.Text(f" {' '.join(rest)}"))


def _strong(text: str) -> list[nodes.Node]:
    return [nodes.strong(text=text)]


def _definitions(items: Iterable[tuple[list[nodes.Node], str]]) -> nodes.definition_list:
    return nodes.definition_list(
        "",
        *(
            nodes.definition_list_item("", nodes.term("", "", *term), nodes.definition("", _paragraph(text)))
            for term, text in items
        ),
    )
