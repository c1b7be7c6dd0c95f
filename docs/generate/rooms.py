"""Every folder of the product and the purpose of each of its modules: the first sentences of their docstrings."""

from __future__ import annotations

import ast
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_INTRODUCTION = """# Rooms

Every folder of `adapter/` and `recommender/`, and what each of its modules does.
[Architecture](architecture.md) shows how they belong together. This page is made from the first sentences of the
modules by `make docs`.
"""
_PRODUCT = ("adapter", "recommender")
_SENTENCE = re.compile(r"(.*?\.)(?:\s|$)", re.DOTALL)
_ABBREVIATIONS = ("e.g.", "i.e.", "vs.")


def rooms_page(checkout: Path) -> str:
    """Return the page: one section for each folder that has modules, in the order of their paths."""
    folders = sorted({path.parent for top in _PRODUCT for path in (checkout / top).rglob("*.py")})
    return "\n".join([_INTRODUCTION, *(_section(folder, checkout) for folder in folders)])


def _section(folder: Path, checkout: Path) -> str:
    about = first_sentence(folder / "__init__.py")
    rows = [
        f"| `{path.stem}` | {first_sentence(path)} |" for path in sorted(folder.glob("*.py")) if path.stem[0] != "_"
    ]
    table = ["", "| module | what it does |", "|---|---|", *rows] if rows else []
    return "\n".join([f"## `{folder.relative_to(checkout)}/`", *(["", about] if about else []), *table, ""])


def first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring on one line; empty if there is none."""
    # A blank line ends the first paragraph; whatever else is between words becomes one space.
    text = " ".join(re.split(r"\n\s*\n", _docstring(path).strip(), maxsplit=1)[0].split())
    end = 0
    for match in _SENTENCE.finditer(text):
        end = match.end()
        if not text[: match.end(1)].endswith(_ABBREVIATIONS):
            break
    return (text[:end] or text).strip().replace("|", "\\|")


def _docstring(path: Path) -> str:
    """Return the text with which a module begins; the rest of the module is not read."""
    with tokenize.open(path) as source:
        tokens = tokenize.generate_tokens(source.readline)
        first = next(token for token in tokens if token.type not in {tokenize.COMMENT, tokenize.NL})
    return str(ast.literal_eval(first.string)) if first.type == tokenize.STRING else ""
