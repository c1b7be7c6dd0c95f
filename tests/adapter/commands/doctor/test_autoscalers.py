"""The doctor looks at HPAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.reports.lines import CheckStatus

if TYPE_CHECKING:
    from tests.adapter.commands.doctor.installation import Installation


class TestHpas:
    def test_hpas_that_lack_a_metric_of_this_adapter_are_shown_with_the_cause(self, installation: Installation) -> None:
        installation.hpa("web", "FailedGetPodsMetric", "unable to get metric open_connections: no metrics returned")
        installation.hpa("cpu", "FailedGetResourceMetric", "no metrics from resource metrics API")
        installation.hpa("well", None)
        lines = installation.lines()
        assert lines["hpas"].message == "1 of 3 HPAs lack a metric"
        assert "FailedGetPodsMetric: unable to get metric open_connections" in lines["hpa/shop/web"].message
        assert "explain METRIC --namespace shop" in lines["hpa/shop/web"].fix
        assert "hpa/shop/cpu" not in lines

    @pytest.mark.parametrize("reason", [None, "FailedGetResourceMetric"], ids=["scales up by cpu", "cpu fails first"])
    def test_an_hpa_that_lacks_one_of_several_metrics_is_shown(
        self, installation: Installation, reason: str | None
    ) -> None:
        both = [
            {"type": "Resource", "resource": {"name": "cpu"}},
            {"type": "External", "external": {"metric": {"name": "queue"}}},
        ]
        installation.hpa("web", reason, metrics=both, current=[{"type": "Resource"}, {"type": ""}])
        installation.hpa("cpu", reason, metrics=both, current=[{"type": ""}, {"type": "External"}])
        installation.hpa("new", None, metrics=both)
        lines = installation.lines()
        assert lines["hpas"].message == "1 of 3 HPAs lack a metric"
        message = "it could not use External metric queue in its last sync, and does not scale down without it"
        assert lines["hpa/shop/web"].message == message
        assert not {"hpa/shop/cpu", "hpa/shop/new"} & lines.keys()

    def test_many_hpas_without_their_metric_are_counted(self, installation: Installation) -> None:
        for number in range(620):
            installation.hpa(f"web-{number:03d}", "FailedGetExternalMetric" if number < 8 else None)
        lines = installation.lines()
        assert lines["hpas"].message == "8 of 620 HPAs lack a metric, 3 of them not shown"
        assert sum(name.startswith("hpa/") for name in lines) == 5

    def test_hpas_that_may_not_be_listed_are_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("list", "horizontalpodautoscalers")
        assert installation.lines()["hpas"].status is CheckStatus.UNKNOWN
