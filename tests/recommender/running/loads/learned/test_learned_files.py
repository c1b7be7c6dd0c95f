"""Choices of models survive a restart; a file that cannot be used is ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.running.loads.histories.target_loads import target_of
from recommender.running.loads.learned.learned_files import OLDEST_SECONDS, LearnedFiles
from recommender.running.loads.learned.learned_models import Learned
from recommender.running.loads.learned.model_tasks import task_of
from recommender.running.loads.predictions.delays import DelayMeter
from tests.recommender.running.loads.load_world import FOR_EACH, need

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.running.loads.histories.target_loads import Target

SHOP = need("load")
NOW = 1_700_000_000.0
VERDICTS: dict[Target, SeriesVerdict] = {
    None: SeriesVerdict("headroom", "headroom until …", Blend(0.1)),
    target_of({"namespace": "a", "deployment": "b"}, FOR_EACH): SeriesVerdict(
        "seasonal",
        "auto: seasonal leads",
        Blend(0.31, (Part("seasonal", 0.7, 1.2), Part("conformal", 0.25, 0.4))),
        Bill(0.31, 0.4),
        {"seasonal": 0.4, "linear": None},
        "in the last day …",
    ),
}


def saved(folder: Path) -> Path:
    learned = Learned(task_of(SHOP, DelayMeter().delays(SHOP)), verdicts=VERDICTS)
    LearnedFiles(folder / "loads", lambda: NOW).save(SHOP, learned)
    (path,) = (folder / "loads").iterdir()
    return path


def test_verdicts_are_restored_as_they_were(tmp_path: Path) -> None:
    saved(tmp_path)
    assert LearnedFiles(tmp_path / "loads", lambda: NOW + 60.0).restore(SHOP) == VERDICTS


def test_without_a_file_there_is_nothing(tmp_path: Path) -> None:
    assert LearnedFiles(tmp_path / "loads", lambda: NOW).restore(SHOP) == {}


@pytest.mark.parametrize("age", [-1.0, OLDEST_SECONDS + 1.0])
def test_old_verdicts_are_of_no_use(tmp_path: Path, age: float) -> None:
    saved(tmp_path)
    assert LearnedFiles(tmp_path / "loads", lambda: NOW + age).restore(SHOP) == {}


def test_verdicts_of_another_configuration_are_of_no_use(tmp_path: Path) -> None:
    saved(tmp_path)
    other = replace(SHOP, settings=replace(SHOP.settings, quantile=0.9))
    assert LearnedFiles(tmp_path / "loads", lambda: NOW).restore(other) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [('"version":1', '"version":2'), ('"weight"', '"x"'), ("0.7", "7.0"), ("0.31", "-1"), ("}", ""), ("{", "[[[[")],
)
def test_a_damaged_file_is_ignored(tmp_path: Path, before: str, after: str) -> None:
    path = saved(tmp_path)
    content = path.read_text()
    path.write_text(content.replace(before, after, 1) if before in content else "")
    assert LearnedFiles(tmp_path / "loads", lambda: NOW).restore(SHOP) == {}


def test_a_folder_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "loads").write_text("no folder")
    files = LearnedFiles(tmp_path / "loads", lambda: NOW)
    learned = Learned(task_of(SHOP, DelayMeter().delays(SHOP)), verdicts=VERDICTS)
    files.save(SHOP, learned)
    files.save(SHOP, learned)
    assert len(caplog.records) == 1
