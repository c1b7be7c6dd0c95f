"""The doctor compares Prometheus's clock with its own, and looks for samples in the future."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.recommender.commands.doctor.installation import ERROR, OK, WARNING
from tests.support.harnesses import prometheus_with
from tests.support.recording_proxy import recording_proxy

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.reports.lines import CheckStatus
    from tests.recommender.commands.doctor.installation import Installation


@pytest.mark.parametrize(("ahead", "status"), [(0.0, OK), (3600.0, ERROR), (-3600.0, ERROR)])
def test_a_clock_difference_is_an_error(installation: Installation, ahead: float, status: CheckStatus) -> None:
    with recording_proxy(installation.prometheus_url) as proxy:
        proxy.server_seconds_ahead = ahead
        line = installation.lines(flags=(f"--prometheus-url={proxy.url}",))["clock/prometheus"]
    assert line.status is status


@pytest.mark.parametrize(("ahead", "status"), [(0, OK), (3600, WARNING)])
def test_samples_in_the_future_are_a_warning(
    installation: Installation, tmp_path: Path, ahead: int, status: CheckStatus
) -> None:
    now = int(time.time())
    history = [f'up{{job="a"}} 1 {moment}' for moment in range(now - 600 + ahead, now + ahead, 15)]
    with prometheus_with(tmp_path / "prometheus", history) as prometheus:
        line = installation.lines(flags=(f"--prometheus-url={prometheus.url}",))["prometheus/future"]
    assert line.status is status


def test_a_prometheus_that_does_not_answer_has_only_one_line(installation: Installation) -> None:
    lines = installation.lines(flags=("--prometheus-url=http://127.0.0.1:9",))
    assert lines["prometheus"].status is ERROR
    assert not {"clock/prometheus", "prometheus/future", "prometheus/clusters"} & set(lines)
