"""A start with a target in two entries is an error, until one of them is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from adapter.foundation.files.file_contents import FilesError
from adapter.foundation.files.kept_contents import KeptContents
from recommender.running.configuration_reloader import ConfigurationReloader
from tests.recommender.configuration.files import TARGET, entry, whole
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

SCALED = ("targets:", f"- {TARGET}", "outputs: [scale]")


def test_a_start_with_one_target_in_two_entries_is_an_error_until_one_of_them_drops_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, registry = tmp_path / "r.yaml", CollectorRegistry()
    file.write_text(whole(entry("a", *SCALED), entry("b", *SCALED)))

    def is_whole() -> bool:
        return registry.get_sample_value("x_config_last_reload_successful") == 1

    reloader = ConfigurationReloader(file, registry, "x")
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith(f"{file}:12: 'b' scales Deployment kube-system/coredns, which 'a' in line 7 also scales: ")
    assert not is_whole()
    assert [each.policy.name for each in reloader.current.recommendations] == ["a", "b"]
    assert all(each.policy.rivals for each in reloader.current.recommendations)
    file.write_text(whole(entry("a", *SCALED), entry("b", *SCALED[:2])))

    def is_mended() -> bool:
        reloader.check()
        return is_whole()

    until(is_mended)
    assert not any(each.policy.rivals for each in reloader.current.recommendations)


def test_the_last_good_version_of_a_refused_entry_survives_a_restart_of_the_worker(tmp_path: Path) -> None:
    file, registry, kept = tmp_path / "r.yaml", CollectorRegistry(), KeptContents()
    file.write_text(whole(entry("a", "maxStep: 2")))
    first = ConfigurationReloader(file, registry, "x", kept)
    assert first.current.recommendations
    file.write_text(whole(entry("a", "maxStep: none")))

    def is_refused() -> bool:
        first.check()
        return registry.get_sample_value("x_config_last_reload_successful") == 0

    until(is_refused)
    assert ConfigurationReloader(file, CollectorRegistry(), "x", kept).current == first.current


def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FilesError, match=r"the folder has no \*\.yaml files: name the one to read"):
        ConfigurationReloader(tmp_path, CollectorRegistry(), "x")
