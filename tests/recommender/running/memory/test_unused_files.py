"""Files of recommendations that were deleted while no process ran are deleted once they can no longer be used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from recommender.running.loads.histories.history_files import LoadFiles
from recommender.running.memory.unused_files import UnusedFiles
from recommender.running.usage.target_usage import KnownUsage
from recommender.running.usage.usage_files import UsageFiles
from tests.recommender.running.loads.histories.test_history_files import filled
from tests.recommender.running.usage.kept_usage import EACH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = 1_790_000_000
DAY = 86_400


def put(folder: Path, name: str, time: float) -> Path:
    path = folder / name
    path.touch()
    os.utime(path, (time, time))
    return path


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_too_old_to_be_used_are_deleted_and_others_are_kept(tmp_path: Path) -> None:
    written = put(tmp_path, "tidewatch-recommender-a.usage", NOW)
    for name, age in (("b.usage", 9), ("c.usage", 11), ("d.usage", -11)):
        put(tmp_path, f"tidewatch-recommender-{name}", NOW - age * DAY)
    put(tmp_path, ".tidewatch-recommender-c.usage.0123abcd.new", NOW - 11 * DAY)
    put(tmp_path, "of-somebody-else", NOW - 11 * DAY)
    (tmp_path / "tidewatch-recommender-folder").mkdir()
    os.utime(tmp_path / "tidewatch-recommender-folder", (0, 0))
    UnusedFiles(tmp_path, 10 * DAY).drop(written)
    kept = {"tidewatch-recommender-b.usage", "tidewatch-recommender-d.usage", "of-somebody-else"}
    assert left(tmp_path) == kept | {written.name, "tidewatch-recommender-folder"}


@pytest.mark.parametrize(("later", "is_dropped"), [(DAY // 2, False), (DAY, True), (-DAY, True)])
def test_the_folder_is_scanned_once_a_day(tmp_path: Path, later: float, *, is_dropped: bool) -> None:
    files = UnusedFiles(tmp_path, 10 * DAY)
    files.drop(put(tmp_path, "tidewatch-recommender-a.usage", NOW))
    old = put(tmp_path, "tidewatch-recommender-c.usage", NOW - 20 * DAY)
    files.drop(put(tmp_path, "tidewatch-recommender-a.usage", NOW + later))
    assert old.exists() != is_dropped


def test_a_missing_folder_is_not_an_error(tmp_path: Path) -> None:
    UnusedFiles(tmp_path / "gone", 10 * DAY).drop(tmp_path / "gone" / "tidewatch-recommender-a.usage")


def save_usage(folder: Path) -> None:
    UsageFiles(folder).save(EACH, KnownUsage.empty(4))


def save_loads(folder: Path) -> None:
    LoadFiles(folder).save(filled(1))


@pytest.mark.parametrize(("save", "days"), [(save_usage, 15), (save_loads, 60)], ids=["usage", "loads"])
def test_saving_deletes_files_older_than_the_longest_history(
    tmp_path: Path, save: Callable[[Path], None], days: int
) -> None:
    save(tmp_path)
    (written,) = tmp_path.iterdir()
    now = written.stat().st_mtime
    old = put(tmp_path, "tidewatch-recommender-shop-old", now - (days + 3) * DAY)
    young = put(tmp_path, "tidewatch-recommender-shop-young", now - days * DAY)
    save(tmp_path)
    assert (old.exists(), young.exists()) == (False, True)
