from __future__ import annotations

import pytest

from benchmarks.options import command_line


@pytest.mark.parametrize("form", ["table", "text", "json"])
def test_a_report_has_the_formats_of_all_commands(form: str) -> None:
    assert command_line("made_up", "What it measures.\n\nMore.").parse_args(["-o", form]).output == form


def test_the_help_begins_with_the_first_line_of_the_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line("made_up", "What it measures.\n\nMore.").parse_args(["--help"])
    shown = capsys.readouterr().out
    assert "python -m benchmarks.made_up" in shown
    assert "What it measures." in shown
    assert "More" not in shown
