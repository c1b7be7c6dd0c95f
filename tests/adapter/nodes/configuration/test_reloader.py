"""The scheduling configuration is followed while it changes; a broken one changes nothing and is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.service.runtime.followed_configuration import LOOKS_UNTIL_SETTLED
from adapter.nodes.configuration.reading import SchedulingFileError
from adapter.nodes.configuration.reloader import SchedulingReloader
from adapter.nodes.model.scheduling_settings import SchedulingSettings

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: SchedulingConfiguration\n"


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduling.yaml"
    path.write_text(f"{HEAD}poolLabel: a\n")
    return path


def settle(reloader: SchedulingReloader) -> None:
    for _ in range(LOOKS_UNTIL_SETTLED):
        reloader.check()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"p_config_{name}", labels)


def test_a_changed_file_is_in_force_and_a_broken_one_is_not(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry, changes = CollectorRegistry(), list[SchedulingSettings]()
    reloader = SchedulingReloader(file, registry, "p")
    reloader.on_change(changes.append)
    assert reloader.current().pool_label == "a"
    file.write_text(f"{HEAD}poolLabel: b\n")
    settle(reloader)
    file.write_text(f"{HEAD}poolLable: c\n")
    settle(reloader)
    settle(reloader)
    assert [change.pool_label for change in changes] == ["b"]
    assert reloader.current().pool_label == "b"
    assert value(registry, "last_reload_successful") == 0
    assert value(registry, "reloads_total", result="success") == 1
    assert value(registry, "reloads_total", result="failure") == 1
    refused = f"{file}:3: the key 'poolLable' is not known: did you mean 'poolLabel'?"
    assert f"{refused}; the configuration before this change stays in force" in caplog.messages
    file.write_text(f"{HEAD}poolLabel: c\n")
    settle(reloader)
    assert reloader.current().pool_label == "c"
    assert value(registry, "last_reload_successful") == 1


def test_a_file_that_vanishes_changes_nothing(file: Path) -> None:
    reloader = SchedulingReloader(file, CollectorRegistry(), "p")
    file.unlink()
    settle(reloader)
    assert reloader.current().pool_label == "a"


def test_without_a_file_the_defaults_are_in_force() -> None:
    reloader = SchedulingReloader(None, CollectorRegistry(), "p")
    settle(reloader)
    assert reloader.current() == SchedulingSettings()


def test_a_broken_file_is_refused_at_the_start(file: Path, tmp_path: Path) -> None:
    file.write_text("kind: Other\n")
    with pytest.raises(SchedulingFileError):
        SchedulingReloader(file, CollectorRegistry(), "p")
    with pytest.raises(FilesError):
        SchedulingReloader(tmp_path / "missing", CollectorRegistry(), "p")


@pytest.mark.parametrize(("others", "count"), [((), "no"), (("a.yaml", "b.yaml"), "2")])
def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path, others: tuple[str, ...], count: str) -> None:
    for name in others:
        (tmp_path / name).write_text(HEAD)
    with pytest.raises(FilesError, match=rf"{tmp_path}: the folder has {count} \*\.yaml files: name the one to read"):
        SchedulingReloader(tmp_path, CollectorRegistry(), "p")
