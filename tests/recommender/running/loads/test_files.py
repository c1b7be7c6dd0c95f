"""Stored histories come back as they were, or are ignored as a whole."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.running.loads.files import LoadFiles
from recommender.running.loads.histories import TargetHistory
from recommender.running.loads.reading import target_of
from tests.recommender.running.loads.load_world import FOR_EACH, need

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recommender.running.loads.reading import Target

NEED = need("load", for_each=FOR_EACH, history_seconds=86_400.0)
START = 1_700_000_000.0
STEP = 10.0


def targets(count: int) -> list[Target]:
    return [target_of({"namespace": "shop", "deployment": f"d{each:03}"}, FOR_EACH) for each in range(count)]


def filled(count: int = 70) -> TargetHistory:
    history = TargetHistory(NEED, count)
    for poll in range(30):
        history.note({each: 100.0 * poll + place for place, each in enumerate(targets(count))}, START + poll * STEP)
    history.fill((0, int(START / STEP) - 100), [])
    return history


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_a_history_comes_back_as_it_was(tmp_path: Path) -> None:
    before, after = filled(), TargetHistory(NEED, 70)
    assert LoadFiles(tmp_path).save(before)
    assert LoadFiles(tmp_path).restore(after)

    end = START + 300
    kept, restored = before.history(targets(70), end), after.history(targets(70), end)
    assert np.array_equal(kept.values, restored.values, equal_nan=True)
    assert kept.start_seconds == restored.start_seconds
    assert before.lacking(end) == after.lacking(end)


def test_a_coarser_grid_takes_every_so_many_samples(tmp_path: Path) -> None:
    before = filled()
    LoadFiles(tmp_path).save(before)
    coarser = TargetHistory(NEED, 201)
    assert coarser.step_seconds == 3 * STEP
    assert LoadFiles(tmp_path).restore(coarser)

    fine, coarse = (each.history(targets(1), START + 290) for each in (before, coarser))
    by_time = dict(zip(fine.times(), fine.values[0], strict=True))
    assert len(coarse.times()) >= 9
    assert all(by_time[time] == value for time, value in zip(coarse.times(), coarse.values[0], strict=True))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda body: body[:-1],
    "flipped": lambda body: body[:5000] + bytes([body[5000] ^ 1]) + body[5001:],
    "empty": lambda _: b"",
    "foreign": lambda _: b"foreign content that is long enough to hold a digest",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    LoadFiles(tmp_path).save(filled())
    path = only_file(tmp_path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    after = TargetHistory(NEED, 70)

    with caplog.at_level(logging.WARNING):
        assert not LoadFiles(tmp_path).restore(after)
    assert after.targets() == ()
    assert ["digest" in record.__dict__["fields"]["problem"] for record in caplog.records] == [True]


def test_the_file_of_another_query_is_ignored(tmp_path: Path) -> None:
    LoadFiles(tmp_path).save(filled())
    other = TargetHistory(replace(NEED, settings=replace(NEED.settings, load="other")), 70)

    assert not LoadFiles(tmp_path).restore(other)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o500)
    files, history = LoadFiles(folder / "loads"), filled(1)

    assert [files.save(history), files.save(history)] == [False, False]
    assert len(caplog.records) == 1


def test_where_the_folder_should_be_is_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "loads").write_text("")
    files, history = LoadFiles(tmp_path / "loads"), filled(1)

    assert [files.save(history), files.save(history)] == [False, False]
    assert not files.restore(history)
    assert sum("cannot be written" in record.getMessage() for record in caplog.records) == 1
