"""The folder of cached answers stays bounded, and no run loses what it uses."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.backtest.recorded.range_cache import KEPT_FILES, KEPT_SECONDS, CachedSteps, RangeCache

if TYPE_CHECKING:
    from pathlib import Path

NOW: Final = 1_767_225_600.0
OLD: Final = NOW - KEPT_SECONDS - 1
KEY: Final = "0123456789abcdef" * 2
STEPS: Final = CachedSteps(7, np.array([1.0, 2.0]))


def cached(folder: Path, count: int, used: float) -> list[Path]:
    """Write files, the first of which was used last."""
    files = [folder / f"{KEY}-{chunk}.steps" for chunk in range(count)]
    for place, file in enumerate(files):
        file.touch()
        os.utime(file, (used - place, used - place))
    return files


def test_the_most_recently_used_files_are_kept_and_the_others_deleted(tmp_path: Path) -> None:
    files = cached(tmp_path, KEPT_FILES + 3, OLD)
    RangeCache(tmp_path, KEY).drop_unused(NOW)
    assert sorted(tmp_path.iterdir()) == sorted(files[:KEPT_FILES])


def test_any_number_of_files_of_the_last_day_is_kept(tmp_path: Path) -> None:
    cached(tmp_path, KEPT_FILES + 3, NOW)
    RangeCache(tmp_path, KEY).drop_unused(NOW)
    assert len(list(tmp_path.iterdir())) == KEPT_FILES + 3


def test_reading_a_file_marks_it_as_used(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path, KEY)
    cache.write(0, STEPS)
    file = tmp_path / f"{KEY}-0.steps"
    os.utime(file, (OLD, OLD))
    assert cache.read(0) is not None
    assert file.stat().st_mtime > OLD


def test_other_files_links_and_folders_are_not_deleted(tmp_path: Path) -> None:
    cached(tmp_path, KEPT_FILES, NOW)
    target = tmp_path.parent / f"{tmp_path.name}-target"
    target.touch()
    others = [tmp_path / "notes.steps", tmp_path / "load.csv", tmp_path / f"{KEY}-1.steps.bak"]
    for other in others:
        other.touch()
        os.utime(other, (OLD, OLD))
    (tmp_path / f"{KEY}-100000.steps").symlink_to(target)
    (tmp_path / f"{KEY}-100001.steps").mkdir()
    before = sorted(tmp_path.iterdir())
    RangeCache(tmp_path, KEY).drop_unused(NOW)
    assert sorted(tmp_path.iterdir()) == before


def test_a_partial_file_left_by_a_killed_run_is_deleted(tmp_path: Path) -> None:
    left, fresh = (tmp_path / f".{KEY}-1.steps.0a1b2c3{digit}.new" for digit in "de")
    for file, used in ((left, OLD), (fresh, NOW)):
        file.touch()
        os.utime(file, (used, used))
    RangeCache(tmp_path, KEY).drop_unused(NOW)
    assert list(tmp_path.iterdir()) == [fresh]


def test_a_missing_or_unreadable_folder_is_not_an_error(tmp_path: Path) -> None:
    RangeCache(tmp_path / "none", KEY).drop_unused(NOW)
    (tmp_path / "file").touch()
    RangeCache(tmp_path / "file", KEY).drop_unused(NOW)
