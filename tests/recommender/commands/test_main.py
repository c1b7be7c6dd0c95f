from __future__ import annotations

import pytest

from recommender.commands.main import main


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_says_that_there_are_no_commands_yet(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    assert "There are no commands yet" in capsys.readouterr().out


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    assert capsys.readouterr().out.startswith("tidewatch-recommender 0.")


def test_a_command_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run"])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("tidewatch-recommender: 'run': ")
