"""The doctor looks at HPAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.reports.lines import CheckStatus

if TYPE_CHECKING:
    from tests.adapter.commands.doctor.installation import Installation


class TestHpas:
    def test_hpas_that_miss_a_metric_of_ours_are_shown_with_the_cause(self, installation: Installation) -> None:
        installation.hpa("web", "FailedGetPodsMetric", "unable to get metric open_connections: no metrics returned")
        installation.hpa("cpu", "FailedGetResourceMetric", "no metrics from resource metrics API")
        installation.hpa("well", None)
        lines = installation.lines()
        assert lines["hpas"].message == "1 of 3 HPAs lack a metric"
        assert "FailedGetPodsMetric: unable to get metric open_connections" in lines["hpa/shop/web"].message
        assert "explain METRIC --namespace shop" in lines["hpa/shop/web"].fix
        assert "hpa/shop/cpu" not in lines

    def test_many_hpas_without_their_metric_are_counted(self, installation: Installation) -> None:
        for number in range(620):
            installation.hpa(f"web-{number:03d}", "FailedGetExternalMetric" if number < 8 else None)
        lines = installation.lines()
        assert lines["hpas"].message == "8 of 620 HPAs lack a metric, 3 of them not shown"
        assert sum(name.startswith("hpa/") for name in lines) == 5

    def test_hpas_that_may_not_be_listed_are_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("list", "horizontalpodautoscalers")
        assert installation.lines()["hpas"].status is CheckStatus.UNKNOWN
