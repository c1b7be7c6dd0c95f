"""The notes that Helm prints after an installation."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import yaml

from tests.helm.chart import CHART, NAMESPACE, helm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def notes(values: Mapping[str, Any], folder: Path, *options: str) -> str:
    """Return the notes, rendered as an object of a copy: Helm prints them only after an installation."""
    shutil.copytree(CHART, folder / "tidewatch")
    templates = folder / "tidewatch" / "templates"
    text = (templates / "NOTES.txt").read_text()
    (templates / "notes.yaml").write_text(
        f'{{{{ define "notes" }}}}{text}{{{{ end }}}}text: {{{{ include "notes" . | quote }}}}'
    )
    shown = ("--namespace", NAMESPACE, "--show-only", "templates/notes.yaml", *options)
    printed = yaml.safe_load(helm("template", "tidewatch", str(folder / "tidewatch"), *shown, values=values))
    return str(printed["text"])
