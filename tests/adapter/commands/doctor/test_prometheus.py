"""The doctor looks at Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.reports.lines import CheckStatus

if TYPE_CHECKING:
    from tests.adapter.commands.doctor.installation import Installation


class TestPrometheus:
    def test_a_prometheus_that_is_away_is_an_error(self, installation: Installation) -> None:
        line = installation.lines("--prometheus-url=http://127.0.0.1:9")["prometheus"]
        assert line.status is CheckStatus.ERROR
        assert "http://127.0.0.1:9 does not answer queries" in line.message
        assert "--prometheus-url" in line.fix

    def test_a_server_that_is_no_prometheus_is_an_error(self, installation: Installation) -> None:
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
