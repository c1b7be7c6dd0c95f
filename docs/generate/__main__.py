"""Writes the pages that are made from the code: `make docs`, or `python -m docs.generate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.files import file_schema
from adapter.foundation.options.schema import schema_text
from adapter.metrics.rulebook.parsing.rule_file import RULE_FILE
from adapter.nodes.configuration.reading import SCHEDULING
from docs.generate.definitions import DEFINITIONS, template
from docs.generate.reference.flag_pages import PROGRAMS, flags_page
from docs.generate.reference.key_pages import keys_page
from docs.generate.reference.message_page import messages_page
from docs.generate.reference.metric_page import metrics_page
from docs.generate.rooms import rooms_page
from recommender.configuration.reading import CONFIGURATION
from recommender.shapes.catalogue import CATALOGUE

if TYPE_CHECKING:
    from adapter.foundation.documents.sections import Section

DOCS = Path(__file__).resolve().parents[1]
SCHEMAS: Final[dict[str, tuple[str, Section[Any]]]] = {
    "machine-shape-catalogue.json": ("catalogue of machine shapes", CATALOGUE),
    "recommender-configuration.json": ("recommender configuration", CONFIGURATION),
    "rule-file.json": ("rule file", RULE_FILE),
    "scheduling-configuration.json": ("scheduling configuration", SCHEDULING),
}
"""Titles and sections by the name of the file in `docs/schemas`."""


def reference_pages() -> dict[str, str]:
    """Return the pages of `docs/reference` by the names of their files."""
    programs = {f"{program.name}.md": flags_page(program) for program in PROGRAMS}
    files = {
        f"{Path(name).stem}.md": keys_page(title, name, file_schema(title, section))
        for name, (title, section) in SCHEMAS.items()
    }
    return programs | files | {"messages.md": messages_page(DOCS.parent), "metrics.md": metrics_page(DOCS.parent)}


def main() -> None:
    """Write each page in place of the former one."""
    for name, text in reference_pages().items():
        (DOCS / "reference" / name).write_text(text, encoding="utf-8")
    (DOCS / "rooms.md").write_text(rooms_page(DOCS.parent), encoding="utf-8")
    for name, (title, section) in SCHEMAS.items():
        (DOCS / "schemas" / name).write_text(schema_text(title, section), encoding="utf-8")
    for path, (component, definition) in DEFINITIONS.items():
        (DOCS.parent / path).write_text(template(definition(), component), encoding="utf-8")


if __name__ == "__main__":
    main()
