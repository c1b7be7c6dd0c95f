"""Writes the scripts beside the code."""

from __future__ import annotations

from pathlib import Path

from completions.scripts import scripts


def main() -> None:
    """Write all of them."""
    for name, text in scripts().items():
        Path(__file__).with_name(name).write_text(text)


if __name__ == "__main__":
    main()
