"""The doctor looks at Prometheus."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.reports.lines import CheckStatus
from tests.support.harnesses import prometheus_with
from tests.support.raw_server import answering, raw_server
from tests.support.recording_proxy import recording_proxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapter.commands.doctor.installation import Installation
    from tests.support.prometheus import ScrapedPrometheus


@pytest.fixture(scope="module")
def prometheus(start_prometheus: Callable[..., ScrapedPrometheus]) -> ScrapedPrometheus:
    return start_prometheus()


class TestPrometheus:
    def test_an_unreachable_prometheus_is_an_error(self, installation: Installation) -> None:
        line = installation.lines("--prometheus-url=http://127.0.0.1:9")["prometheus"]
        assert line.status is CheckStatus.ERROR
        assert "http://127.0.0.1:9 does not answer queries" in line.message
        assert "check --prometheus-url, whether Prometheus runs" in line.fix

    def test_a_server_that_is_not_prometheus_is_an_error(self, installation: Installation) -> None:
        line = installation.lines(f"--prometheus-url={installation.cluster.url}")["prometheus"]
        assert line.status is CheckStatus.ERROR

    def test_refused_credentials_are_an_error_that_does_not_show_them(self, installation: Installation) -> None:
        token = installation.folder / "token"
        token.write_text("averysecrettoken")
        flags = (f"--prometheus-url={installation.cluster.url}/apis", f"--prometheus-token-file={token}")
        line = installation.lines(*flags)["prometheus"]
        assert line.status is CheckStatus.ERROR
        assert "--prometheus-token-file" in line.fix
        assert "averysecrettoken" not in f"{line}"

    def test_without_an_address_prometheus_is_unknown(self, installation: Installation) -> None:
        assert installation.lines()["prometheus"].status is CheckStatus.UNKNOWN

    @pytest.mark.parametrize(
        ("ahead", "status", "words"),
        [
            (0.0, CheckStatus.OK, "agree"),
            (20.0, CheckStatus.WARNING, "s ahead of this machine's"),
            (3600.0, CheckStatus.ERROR, "3600 s ahead of this machine's: answers are refused"),
            (-3600.0, CheckStatus.ERROR, "3600 s behind this machine's: answers are refused"),
        ],
    )
    def test_the_clock_of_prometheus_is_compared_and_not_that_of_a_gateway(
        self, installation: Installation, prometheus: ScrapedPrometheus, ahead: float, status: CheckStatus, words: str
    ) -> None:
        with recording_proxy(prometheus.url) as proxy:
            proxy.server_seconds_ahead = ahead
            line = installation.lines(f"--prometheus-url={proxy.url}")["clock/prometheus"]
        assert line.status is status
        assert words in line.message

    @pytest.mark.parametrize(("latency", "status"), [(1.0, CheckStatus.OK), (30.0, CheckStatus.WARNING)])
    def test_a_server_that_gives_old_values_the_present_time_is_a_warning(
        self, installation: Installation, prometheus: ScrapedPrometheus, latency: float, status: CheckStatus
    ) -> None:
        with recording_proxy(prometheus.url) as proxy:
            proxy.latency_seconds = latency
            line = installation.lines(f"--prometheus-url={proxy.url}")["clock/prometheus"]
        assert line.status is status
        assert ("values of 30 s ago as if they were present" in line.message) is (status is CheckStatus.WARNING)
        assert ("latency_offset=1ms" in line.fix) is (status is CheckStatus.WARNING)

    @pytest.mark.parametrize(("ahead", "status"), [(0.0, CheckStatus.OK), (3600.0, CheckStatus.ERROR)])
    def test_the_date_header_is_compared_if_prometheus_does_not_return_its_time(
        self, installation: Installation, prometheus: ScrapedPrometheus, ahead: float, status: CheckStatus
    ) -> None:
        with recording_proxy(prometheus.url) as proxy:
            proxy.no_time, proxy.seconds_ahead = True, ahead
            assert installation.lines(f"--prometheus-url={proxy.url}")["clock/prometheus"].status is status

    @pytest.mark.parametrize(
        ("ahead", "status", "words"),
        [
            (0, CheckStatus.OK, "no samples with future timestamps"),
            (40, CheckStatus.OK, "no samples with future timestamps"),
            (
                120,
                CheckStatus.WARNING,
                "(targets: 1), so the clock of a Prometheus that writes to it is or was ahead",
            ),
            (3600, CheckStatus.WARNING, "when their time comes, they are taken for current"),
        ],
    )
    def test_samples_from_the_future_are_a_warning(
        self, installation: Installation, tmp_path: Path, ahead: int, status: CheckStatus, words: str
    ) -> None:
        now = int(time.time())
        history = [f'up{{job="a"}} 1 {moment}' for moment in range(now - 600 + ahead, now + ahead, 15)]
        with prometheus_with(tmp_path / "prometheus", history) as prometheus:
            line = installation.lines(f"--prometheus-url={prometheus.url}")["prometheus/future"]
        assert line.status is status
        assert words in line.message

    @pytest.mark.parametrize("line", ["prometheus/clusters", "prometheus/future"])
    @pytest.mark.parametrize(
        ("clusters", "status"), [((), CheckStatus.UNKNOWN), (("eu-1", "us-1"), CheckStatus.WARNING)]
    )
    def test_a_partial_answer_shows_what_is_wrong_but_never_that_nothing_is(
        self, installation: Installation, line: str, clusters: tuple[str, ...], status: CheckStatus
    ) -> None:
        found = [{"metric": {"cluster": name}, "value": [1, "1"]} for name in clusters]
        answer = {"status": "success", "warnings": ["store-1 is away"]}
        body = json.dumps({**answer, "data": {"resultType": "vector", "result": found}}).encode()
        with raw_server(answering(body)) as server:
            judged = installation.lines(f"--prometheus-url={server.url}")[line]
        assert judged.status is status
        assert ("store-1 is away" in judged.message) is (status is CheckStatus.UNKNOWN)
