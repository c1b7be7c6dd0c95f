"""Where there is no data, the rule's policy applies, or otherwise the flag's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.rulebook.model import OnNoData, Policy
from tests.adapter.metrics.apis.fakes import (
    AskedExternal,
    FakeReadings,
    Server,
    all_pods,
    answer,
    custom_metric,
    external_metric,
    rows,
)

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Metric

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/rps"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue"


def under(metric: Metric, policy: OnNoData | None) -> Metric:
    return replace(metric, rule=replace(metric.rule, policy=Policy(policy)))


def server(policy: OnNoData | None, *, flag_says_error: bool) -> Server:
    rps, queue = under(custom_metric("rps"), policy), under(external_metric("queue"), policy)
    answers: dict[Any, Any] = {all_pods(rps): answer(), AskedExternal(queue, "shop", EVERYTHING): rows()}
    return Server(FakeReadings(Catalogue((rps, queue), generation=1), answers), empty_is_error=flag_says_error)


@pytest.mark.parametrize("target", [CUSTOM, EXTERNAL], ids=["custom", "external"])
@pytest.mark.parametrize(
    ("policy", "flag_says_error", "status"),
    [
        (None, False, 200),
        (None, True, 404),
        (OnNoData.ERROR, False, 404),
        (OnNoData.ERROR, True, 404),
        (OnNoData.EMPTY, False, 200),
        (OnNoData.EMPTY, True, 200),
        (OnNoData.VALUE, False, 200),
        (OnNoData.VALUE, True, 404),
    ],
)
def test_the_status_without_data_follows_the_rule_and_then_the_flag(
    target: str,
    policy: OnNoData | None,
    flag_says_error: bool,  # noqa: FBT001 - a column of the table
    status: int,
) -> None:
    assert server(policy, flag_says_error=flag_says_error).get(target).status == status
