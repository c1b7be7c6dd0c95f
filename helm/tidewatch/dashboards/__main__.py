"""Writes the JSON of each dashboard beside its code."""

from __future__ import annotations

from pathlib import Path

from helm.tidewatch.dashboards.texts import DASHBOARDS, text_of


def main() -> None:
    """Write the JSON of all dashboards."""
    for name, build in DASHBOARDS.items():
        (Path(__file__).with_name(f"{name}.json")).write_text(text_of(build()))


if __name__ == "__main__":
    main()
