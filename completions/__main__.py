"""Writes the scripts beside the code, and the manual pages into their folder."""

from __future__ import annotations

from pathlib import Path

from completions.manual_pages import manual_pages
from completions.scripts import scripts


def main() -> None:
    """Write all of them, and remove the pages of commands that are gone."""
    here = Path(__file__).parent
    for name, text in scripts().items():
        (here / name).write_text(text)
    pages, folder = manual_pages(), here / "man1"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
