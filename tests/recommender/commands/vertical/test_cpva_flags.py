"""The command line of cluster-proportional-vertical-autoscaler, and how it is read."""

from __future__ import annotations

import pytest

from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from recommender.commands.cpva.flags import CPVA
from recommender.commands.cpva.settings import CpvaSettings, settings_of
from recommender.kinds.proportional.parameters import ResourceStep

CONFIG = '{"thing":{"requests":{"cpu":{"base":"250m","step":"100m","nodesPerStep":10}}}}'
README = (
    "--target=deployment/thing",
    "--namespace=kube-system",
    "--logtostderr=true",
    "--poll-period-seconds=10",
    f"--default-config={CONFIG}",
)
"""The flags of the manifest in the README of cluster-proportional-vertical-autoscaler."""


def settings(*arguments: str, **environment: str) -> CpvaSettings:
    return settings_of(parse_flags(CPVA, arguments, {}), environment)


def test_the_flags_of_the_readme_are_read_as_documented() -> None:
    found = settings(*README)
    assert str(found.target) == "Deployment kube-system/thing"
    assert found.defaults["thing"]["requests"]["cpu"] == ResourceStep("250m", step="100m", nodes_per_step=10)
    assert found.poll_seconds == 10.0
    assert parse_flags(CPVA, README, {}).warnings == (
        "--logtostderr has no effect: logs go to stderr; --log-format and --log-level say how",
    )


@pytest.mark.parametrize(
    ("target", "whole"),
    [("DaemonSet/Agent", "DaemonSet ns/agent"), ("REPLICASET/web", "ReplicaSet ns/web")],
)
def test_kinds_are_read_case_insensitively(target: str, whole: str) -> None:
    assert str(settings(f"--target={target}", f"--default-config={CONFIG}", MY_NAMESPACE="ns").target) == whole


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "--target is required"),
        (("--target=deployment/a",), "--namespace: it is not set, and neither is MY_NAMESPACE"),
        (("--target=a", *README[1:]), "--target is 'a': write deployment/NAME"),
        (("--target=statefulset/a", *README[1:]), "--target is 'statefulset/a'"),
        (("--target=deployment/", *README[1:]), "--target is 'deployment/'"),
        (("--target=deployment/a/b", *README[1:]), "--target is 'deployment/a/b'"),
        (README[:2], "neither --default-config nor --config-file is set"),
        ((*README, "--poll-period-seconds=0"), "--poll-period-seconds is 0: write 1 to 31536000 seconds"),
        ((*README, f"--poll-period-seconds={'9' * 400}"), "9…: write 1 to 31536000"),
        ((*README[:2], "--default-config={"), "--default-config: this is not JSON"),
        ((*README[:2], "--default-config={}"), "--default-config: it names no size of any container"),
    ],
)
def test_flags_that_cannot_work_are_refused_at_startup(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        settings(*arguments)
    assert reason in str(refused.value)
