"""How rows are printed whose last column is a sentence."""

from __future__ import annotations

import pytest

from recommender.decisions.texts.columns import columns

NOTE = "deployment-nobody-created does not exist: correct the target, or create it"


@pytest.mark.parametrize("name", ["web", "a-deployment-whose-name-leaves-no-room-for-a-note-beside-it"])
@pytest.mark.parametrize("width", [40, 80])
def test_no_word_of_the_last_column_is_broken(name: str, width: int) -> None:
    lines = list(columns([("TARGET", "NOTE"), (name, NOTE)], width, indent="  "))
    assert " ".join(" ".join(lines).split()) == f"TARGET NOTE {name} {NOTE}"
    assert [line for line in lines if len(line) > width and name not in line] == []


def test_a_text_that_has_no_room_beside_its_row_is_below_it() -> None:
    rows = [
        ("TARGET", "ACTION", "NOTE"),
        ("Deployment chat/gateway", "none", "it is paused until noon"),
        ("b", "scale", ""),
    ]
    assert list(columns(rows, 50, indent="  ")) == [
        "  TARGET                   ACTION  NOTE",
        "  Deployment chat/gateway  none",
        "      it is paused until noon",
        "  b                        scale   ",
    ]


def test_a_long_text_of_blanks_alone_leaves_its_column_empty() -> None:
    assert list(columns([("a", " " * 40)], 30)) == ["a  "]
