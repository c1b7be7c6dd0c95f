"""Followed configuration files: the last good version stays in force, and metrics say what became of each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.files.kept_contents import KeptContents
from adapter.foundation.service.runtime.followed_configuration import (
    LOOKS_UNTIL_SETTLED,
    RESULTS,
    FollowedConfiguration,
    ReloadMetrics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from adapter.foundation.files.file_contents import FileContent


class BugError(Exception):
    """An error that no caller expects."""


class Owner:
    """An owner of numbers in a file: those below 0 cannot be read, and odd ones are in force in part."""

    def __init__(self, path: Path, kept: KeptContents | None = None) -> None:
        self.path = path
        self.registry = CollectorRegistry()
        self.in_force: list[int] = []
        self.apply: Callable[[int], None] = self.in_force.append
        self.followed = FollowedConfiguration(
            [path],
            self._load,
            self._apply_number,
            unusable=(ValueError, FilesError),
            metrics=ReloadMetrics(self.registry, "p"),
            kept=kept,
        )

    @staticmethod
    def _load(contents: Sequence[FileContent]) -> int:
        number = int(contents[0].text)
        if number < 0:
            raise ValueError(f"{number} is below 0")
        return number

    def _apply_number(self, number: int) -> bool:
        self.apply(number)
        return number % 2 == 0

    def write(self, text: str) -> None:
        self.path.write_text(text)
        for _ in range(LOOKS_UNTIL_SETTLED):
            self.followed.check()

    def metrics(self) -> tuple[float | None, dict[str, float | None]]:
        sample = self.registry.get_sample_value
        counted = {result: sample("p_config_reloads_total", {"result": result}) for result in RESULTS}
        return sample("p_config_last_reload_successful"), counted


@pytest.fixture(name="owner")
def _owner(tmp_path: Path) -> Owner:
    (tmp_path / "file").write_text("0")
    return Owner(tmp_path / "file")


def test_each_change_is_counted_by_its_result(owner: Owner, caplog: pytest.LogCaptureFixture) -> None:
    assert (owner.followed.value, owner.in_force) == (0, [])
    for text, state, refused in (("2", 1, False), ("3", 0, False), ("-1", 0, True), ("4", 1, False)):
        owner.write(text)
        assert (owner.metrics()[0], owner.followed.is_refused) == (state, refused), text
    assert owner.in_force == [2, 3, 4]
    assert owner.metrics()[1] == {"success": 2, "partial": 1, "failure": 1}
    assert caplog.messages == ["-1 is below 0; the configuration before this change stays in force"]


def test_a_change_that_could_not_be_applied_is_tried_again(owner: Owner) -> None:
    def fail(_: int) -> None:
        raise BugError

    owner.apply = fail
    with pytest.raises(BugError):
        owner.write("2")
    assert (owner.followed.value, owner.metrics()) == (0, (0, dict.fromkeys(RESULTS, 0)))
    owner.apply = owner.in_force.append
    owner.followed.check()
    assert (owner.followed.value, owner.in_force) == (2, [2])
    assert owner.metrics() == (1, {"success": 1, "partial": 0, "failure": 0})


@pytest.mark.parametrize("broken", [b"-1", b"\xff", None], ids=["refused", "unreadable", "gone"])
def test_a_worker_with_unusable_files_starts_with_the_last_version_of_its_predecessor(
    tmp_path: Path, broken: bytes | None
) -> None:
    path, kept = tmp_path / "file", KeptContents()
    path.write_text("2")
    Owner(path, kept).write("3")
    path.unlink() if broken is None else path.write_bytes(broken)

    owner = Owner(path, kept)
    assert (owner.followed.value, owner.in_force) == (3, [2, 3])
    owner.in_force.clear()
    for _ in range(LOOKS_UNTIL_SETTLED):
        owner.followed.check()
    assert (owner.followed.is_refused, owner.metrics()[0]) == (True, 0)
    owner.write("4")
    assert (owner.followed.value, owner.in_force) == (4, [4])


def test_a_worker_applies_the_versions_since_the_last_one_applied_in_full(tmp_path: Path) -> None:
    path, kept = tmp_path / "file", KeptContents()
    path.write_text("2")
    first = Owner(path, kept)
    for number in ("4", "3", "-1", "5"):
        first.write(number)
    second = Owner(path, kept)
    assert (second.followed.value, second.in_force) == (5, [4, 3, 5])
    second.write("6")
    assert Owner(path, kept).in_force == []


def test_a_former_version_that_ends_a_worker_is_skipped_by_the_next_one(tmp_path: Path) -> None:
    path, kept = tmp_path / "file", KeptContents()
    path.write_text("2")
    first = Owner(path, kept)
    for number in ("3", "5"):
        first.write(number)

    class Doomed(Owner):
        @staticmethod
        def _load(contents: Sequence[FileContent]) -> int:
            if contents[0].text == "3":
                raise SystemExit
            return Owner._load(contents)

    with pytest.raises(SystemExit):
        Doomed(path, kept)
    assert Doomed(path, kept).followed.value == 5


def test_usable_files_take_precedence_over_versions_of_a_former_worker(tmp_path: Path) -> None:
    path, kept = tmp_path / "file", KeptContents()
    path.write_text("2")
    Owner(path, kept)
    path.write_text("4")
    assert Owner(path, kept).followed.value == 4


def test_without_a_former_worker_unusable_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(FilesError):
        Owner(tmp_path / "file", KeptContents())
