"""The predicates say what kube-scheduler's own filter plugins say, node by node and in the same words.

`SCHEDULING_CLUSTERS=5000 make e2e suite=tests/e2e/scheduling/test_scheduling_filters.py` judges 5,000 random clusters,
CI some hundreds. The seed is fixed; `SCHEDULING_SEED` sets another one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.e2e import toolchain
from tests.e2e.judge.judging import SOURCE, ClusterVerdict, Judge
from tests.e2e.judge.our_filters import our_verdict
from tests.e2e.judge.scheduling_clusters import clusters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.judge.judging import Objects

CLUSTERS: Final = int(os.environ.get("SCHEDULING_CLUSTERS", "400"))
SEED: Final = int(os.environ.get("SCHEDULING_SEED", "17"))

# A cluster is judged in some ten milliseconds, on a busy machine in ten times that.
pytestmark = pytest.mark.timeout(120 + CLUSTERS // 5)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Build the judge from its source: this takes a minute the first time, and then Go's cache has it."""
    program = toolchain.build(SOURCE, tmp_path_factory.mktemp("judge") / "judge")
    with Judge(program) as running:
        yield running


def test_every_verdict_and_every_reason_is_the_scheduler_s(judge: Judge) -> None:
    @seed(SEED)
    @settings(
        max_examples=CLUSTERS,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(clusters())
    def compare(cluster: Objects) -> None:
        theirs = judge.ask(cluster)
        assert our_verdict(cluster) == ClusterVerdict(theirs.refused, theirs.nodes)

    compare()


def test_the_judge_is_formatted_as_gofmt_does() -> None:
    assert not toolchain.unformatted(SOURCE)
