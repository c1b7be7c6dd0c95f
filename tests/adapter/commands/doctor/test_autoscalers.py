"""The doctor looks at HPAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.commands.doctor.autoscalers import judge_hpas, judge_replicas, served_sources
from adapter.foundation.objects.names import ObjectName
from adapter.foundation.reports.lines import CheckStatus

if TYPE_CHECKING:
    from tests.adapter.commands.doctor.installation import Installation


class TestHpas:
    def test_hpas_that_lack_a_metric_of_this_adapter_are_shown_with_the_cause(self, installation: Installation) -> None:
        installation.hpa("web", "FailedGetPodsMetric", "unable to get metric open_connections: no metrics returned")
        installation.hpa("cpu", "FailedGetResourceMetric", "no metrics from resource metrics API")
        installation.hpa("well", None)
        lines = installation.lines()
        assert lines["hpas"].message == "HPAs that lack a metric: 1 of 3"
        assert "FailedGetPodsMetric: unable to get metric open_connections" in lines["hpa/shop/web"].message
        fix = lines["hpa/shop/web"].fix
        assert "explain METRIC --namespace shop" in fix
        assert "--server, or with the --config" in fix, "without either, the command is refused"
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
        assert lines["hpas"].message == "HPAs that lack a metric: 1 of 3"
        message = "it could not use External metric queue in its last sync, and does not scale down without it"
        assert lines["hpa/shop/web"].message == message
        assert not {"hpa/shop/cpu", "hpa/shop/new"} & lines.keys()

    @pytest.mark.parametrize(
        ("condition", "reason", "fix"),
        [
            ("AbleToScale", "FailedGetScale", "correct its scaleTargetRef, or create the target"),
            ("AbleToScale", "FailedUpdateScale", "let the HPA controller write the size"),
            ("ScalingActive", "InvalidSelector", "give the target's scale subresource a selector"),
            ("ScalingActive", "AmbiguousSelector", "give each HPA a target whose pods no other HPA's target selects"),
        ],
    )
    def test_an_hpa_on_a_metric_of_this_adapter_that_cannot_scale_its_target_is_shown(
        self, installation: Installation, condition: str, reason: str, fix: str
    ) -> None:
        ours = [{"type": "Pods", "pods": {"metric": {"name": "open_connections"}}}]
        others = [{"type": "Resource", "resource": {"name": "cpu"}}]
        why = 'deployments/scale.apps "wbe" not found'
        installation.hpa("web", reason, why, condition=condition, metrics=ours)
        installation.hpa("cpu", reason, why, condition=condition, metrics=others)
        lines = installation.lines()
        assert lines["hpas"].message == "HPAs that do not scale their targets: 1 of 2"
        assert lines["hpa/shop/web"].message == f"it does not scale: {reason}: {why}"
        assert lines["hpa/shop/web"].fix.startswith(fix)
        assert "hpa/shop/cpu" not in lines
        installation.hpa("api", "FailedGetPodsMetric", "no metrics returned", metrics=ours)
        assert installation.lines()["hpas"].message == "HPAs that lack a metric or do not scale their targets: 2 of 3"

    def test_a_write_conflict_is_no_fault_since_the_next_sync_writes_again(self, installation: Installation) -> None:
        ours = [{"type": "Pods", "pods": {"metric": {"name": "open_connections"}}}]
        why = (
            "the HPA controller was unable to update the target scale: Operation cannot be fulfilled on "
            'deployments.apps "web": the object has been modified; please apply your changes to the latest version and '
            "try again"
        )
        installation.hpa("web", "FailedUpdateScale", why, condition="AbleToScale", metrics=ours)
        line = installation.lines()["hpas"]
        assert line.status is CheckStatus.OK
        checked = ", and none that uses one fails to scale its target"
        assert line.message == f"no HPA lacks a custom or external metric{checked}; HPAs: 1"
        installation.hpa("web", "FailedUpdateScale", why, condition="AbleToScale", metrics=ours, current=[{"type": ""}])
        assert installation.lines()["hpas"].message == "HPAs that lack a metric: 1 of 1"

    def test_an_hpa_without_metadata_is_shown(self) -> None:
        hpa = {
            "status": {"conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetPodsMetric"}]}
        }
        line, _ = judge_hpas([hpa], served_sources(external=False, resources=False))
        assert line.name == "hpa/unknown/unknown"
        assert "None" not in f"{line}"

    def test_many_hpas_without_their_metric_are_counted(self, installation: Installation) -> None:
        for number in range(620):
            installation.hpa(f"web-{number:03d}", "FailedGetExternalMetric" if number < 8 else None)
        lines = installation.lines()
        assert lines["hpas"].message == "HPAs that lack a metric: 8 of 620, 3 of them not shown"
        assert sum(name.startswith("hpa/") for name in lines) == 5

    def test_hpas_that_may_not_be_listed_are_unknown(self, installation: Installation) -> None:
        installation.cluster.objects.deny("list", "horizontalpodautoscalers")
        assert installation.lines()["hpas"].status is CheckStatus.UNKNOWN


def test_without_a_ready_pod_the_repair_also_helps_where_no_pod_may_be_created() -> None:
    """A quota or an admission policy refuses pods before they exist."""
    line = judge_replicas(ObjectName("monitoring", "tidewatch"), ())
    assert "`kubectl -n monitoring get events --field-selector reason=FailedCreate`" in line.fix
