from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from benchmarks import discovery_lists
from benchmarks.cores import Cores
from benchmarks.progress import Progress
from benchmarks.slow_readers import Company, Settings, companies, main, measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.adapter_stage import Backdrop, RunningAdapter

SETTINGS = Settings((82_000,), readers=6, strangers=6, seconds=1.0, rate=20.0, settle_seconds=0.5)
LISTED = discovery_lists.Settings(
    metrics=600, seconds=1.0, hpa_rate=20.0, every_seconds=0.25, relist_seconds=30, scrape_seconds=1
)
QUIET = Progress("test", io.StringIO())


@pytest.fixture(scope="module", name="stage")
def _stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backdrop]:
    with discovery_lists.standing(tmp_path_factory.mktemp("readers"), LISTED, Cores.of_this_machine()) as stage:
        yield stage


@pytest.fixture(scope="module", name="adapter")
def _adapter(stage: Backdrop) -> Iterator[RunningAdapter]:
    with discovery_lists.adapter_before(stage, LISTED) as adapter:
        discovery_lists.wait_for_list(adapter, LISTED, QUIET)
        yield adapter


@pytest.mark.parametrize("company", companies(SETTINGS), ids=lambda company: company.label)
def test_others_are_answered_beside_any_company(stage: Backdrop, adapter: RunningAdapter, company: Company) -> None:
    row = measured(stage, adapter, company, SETTINGS, QUIET)
    assert (row["requests"], row["errors"], row["rude_at_once"]) == (20, 0, company.count)
    assert all(isinstance(row[key], float) for key in ("p99_ms", "readyz_max_ms", "rss_peak_mib"))


@pytest.mark.parametrize("arguments", [["--readers", "0"], ["--list-bytes", "1"], ["--seconds", "x"], ["-o", "xml"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
