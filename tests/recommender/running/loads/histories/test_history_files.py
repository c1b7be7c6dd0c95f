"""Stored histories are restored unchanged, or are ignored as a whole."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.predictive_settings import ForEach
from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.loads.histories.load_histories import TargetHistory
from recommender.running.loads.histories.target_loads import target_of
from tests.recommender.running.loads.load_harness import FOR_EACH, need

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.load_needs import LoadNeed

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


def test_a_history_is_restored_as_it_was(tmp_path: Path) -> None:
    before, after = filled(), TargetHistory(NEED, 70)
    assert LoadFiles(tmp_path).save(before)
    assert LoadFiles(tmp_path).restore(after)

    end = START + 300
    kept, restored = before.history(targets(70), end), after.history(targets(70), end)
    assert np.array_equal(kept.values, restored.values, equal_nan=True)
    assert kept.start_seconds == restored.start_seconds
    assert before.missing_times(end) == after.missing_times(end)


def test_a_coarser_grid_takes_every_nth_sample(tmp_path: Path) -> None:
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


def test_a_file_of_another_query_is_ignored(tmp_path: Path) -> None:
    LoadFiles(tmp_path).save(filled())
    other = TargetHistory(replace(NEED, settings=replace(NEED.settings, load="other")), 70)

    assert not LoadFiles(tmp_path).restore(other)


@pytest.mark.parametrize(
    "other",
    [
        replace(NEED, settings=replace(NEED.settings, for_each=ForEach("kubernetes_namespace", "deployment"))),
        replace(NEED, settings=replace(NEED.settings, for_each=replace(FOR_EACH, kind="StatefulSet"))),
        replace(NEED, settings=replace(NEED.settings, for_each=None)),
        replace(NEED, source="another Prometheus"),
    ],
)
def test_a_file_of_the_same_query_with_another_meaning_is_ignored(tmp_path: Path, other: LoadNeed) -> None:
    LoadFiles(tmp_path).save(filled(2))
    after = TargetHistory(other, 2)

    assert not LoadFiles(tmp_path).restore(after)
    assert after.targets() == ()


HEADS: dict[str, dict[str, object]] = {
    "step of zero": {"step_seconds": 0},
    "negative step": {"step_seconds": -10.0},
    "step as text": {"step_seconds": "10"},
    "no steps": {"steps": 0},
    "too many steps": {"steps": 10**15, "targets": []},
    "first as text": {"first": "now"},
    "first beyond all times": {"first": 2**70},
    "times beyond the steps": {"asked": [[0, 2**62]]},
    "half a span": {"asked": [[1]]},
    "no targets": {"targets": None},
    "half a target": {"targets": [["apps/v1", "Deployment"]] * 2},
    "a number as target": {"targets": [7] * 2},
    "a surprise": {"surprise": 1},
    "another version": {"version": 99},
}


@pytest.mark.parametrize("change", HEADS)
def test_a_file_edited_by_hand_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture, change: str) -> None:
    LoadFiles(tmp_path).save(filled(2))
    path = only_file(tmp_path)
    line, rest = path.read_bytes()[:-32].split(b"\n", 1)
    content = json.dumps({**json.loads(line), **HEADS[change]}).encode() + b"\n" + rest
    path.write_bytes(content + hashlib.blake2b(content, digest_size=32).digest())
    after = TargetHistory(NEED, 2)

    with caplog.at_level(logging.WARNING):
        assert not LoadFiles(tmp_path).restore(after)
    assert after.targets() == ()
    assert len(caplog.records) == 1


def test_stored_samples_that_cannot_be_loads_are_unknown(tmp_path: Path) -> None:
    LoadFiles(tmp_path).save(filled(1))
    path = only_file(tmp_path)
    line, rest = path.read_bytes()[:-32].split(b"\n", 1)
    samples = np.frombuffer(rest, dtype="<f4").copy()
    samples[-3:] = (np.inf, -np.inf, -5.0)
    content = line + b"\n" + samples.tobytes()
    path.write_bytes(content + hashlib.blake2b(content, digest_size=32).digest())
    after = TargetHistory(NEED, 1)
    assert LoadFiles(tmp_path).restore(after)

    assert np.isnan(after.history(targets(1), START + 290).values[0, -3:]).all()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o500)
    files, history = LoadFiles(folder / "loads"), filled(1)

    assert [files.save(history), files.save(history)] == [False, False]
    assert len(caplog.records) == 1


def test_a_file_instead_of_the_folder_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "loads").write_text("")
    files, history = LoadFiles(tmp_path / "loads"), filled(1)

    assert [files.save(history), files.save(history)] == [False, False]
    assert not files.restore(history)
    assert sum("cannot be written" in record.getMessage() for record in caplog.records) == 1
