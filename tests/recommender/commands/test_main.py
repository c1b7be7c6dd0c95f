from __future__ import annotations

import pytest

from recommender.commands.main import main
from recommender.commands.table import COMMANDS


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS.commands)


@pytest.mark.parametrize("name", COMMANDS.commands)
def test_each_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"Usage: tidewatch-recommender {name} [flags]")


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    assert capsys.readouterr().out.startswith("tidewatch-recommender 0.")


@pytest.mark.parametrize(
    ("name", "hint"), [("recomend", "did you mean recommend?"), ("x", "see tidewatch-recommender")]
)
def test_an_unknown_command_is_wrong_usage(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith(f"tidewatch-recommender: there is no command {name!r}: {hint}")


@pytest.mark.parametrize("name", ["backtest", "replay", "sizes"])
def test_help_names_every_kind_of_picture_that_plot_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "into this PNG or SVG file" in " ".join(capsys.readouterr().out.split())
