"""The command lines of addon-resizer 1.8 and 2.x."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from recommender.commands.pod_nanny.flags import POD_NANNY
from recommender.commands.pod_nanny.leading import write_seconds
from recommender.commands.pod_nanny.settings import NannySettings, ResizeRule, addresses_of, settings_of
from recommender.kinds.proportional.nanny.nanny_configuration import NannyParameters
from recommender.kinds.proportional.nanny.thresholds import Delays
from recommender.leader_election.lease_rules import LeaseTiming

EXAMPLE = (
    "--config-dir=/etc/config",
    "--cpu=300m",
    "--extra-cpu=20m",
    "--memory=200Mi",
    "--extra-memory=10Mi",
    "--threshold=5",
    "--deployment=nanny-v1",
)
"""The flags of addon-resizer's example Deployment."""
POD = {"MY_POD_NAME": "nanny-v1-x", "MY_POD_NAMESPACE": "default"}
NO_DELAYS = Delays(0.0, 0.0)


def settings(*arguments: str, **environment: str) -> NannySettings:
    return settings_of(parse_flags(POD_NANNY, arguments, {}), environment or POD)


def test_the_flags_of_the_example_are_read_as_documented() -> None:
    found = settings(*EXAMPLE)
    assert (str(found.ward.deployment), found.ward.container, found.ward.pod) == (
        "Deployment default/nanny-v1",
        "pod-nanny",
        "nanny-v1-x",
    )
    assert found.parameters == NannyParameters("300m", "20m", "200Mi", "10Mi")
    assert found.config_file == Path("/etc/config/NannyConfiguration")
    assert found.rule == ResizeRule(5, None, None, NO_DELAYS)
    assert (found.poll_seconds, found.lease) == (10.0, None)


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ((), ResizeRule(0, None, None, NO_DELAYS)),
        (("--estimator=exponential",), ResizeRule(0, None, 16, NO_DELAYS)),
        (("--estimator", "exponential", "--minClusterSize=5"), ResizeRule(0, None, 5, NO_DELAYS)),
        (("--acceptance-offset=30",), ResizeRule(0, (30, 10), None, NO_DELAYS)),
        (("--recommendation_offset=5",), ResizeRule(0, (20, 5), None, NO_DELAYS)),
        (("--scale-down-delay=24h", "--scale-up-delay=1m"), ResizeRule(0, None, None, Delays(60.0, 86400.0))),
    ],
)
def test_the_flags_select_the_resize_rule_of_their_version(flags: tuple[str, ...], rule: ResizeRule) -> None:
    assert settings("--deployment=a", *flags).rule == rule


def test_run_on_control_plane_uses_the_lease_of_addon_resizer() -> None:
    control_plane = ("--run-on-control-plane", "--nanny-config-map-name=n", "--pod=", "--leader-election-enable")
    found = settings("--deployment=a", *control_plane, "--leader-election-lease-duration=30s")
    assert (found.ward.pod, found.config_map, found.lease) == ("", "n", LeaseTiming(lease_seconds=30))


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--threshold=101",), "--threshold is 101: write a number from 0 to 100"),
        (("--acceptance-offset=-1",), "--acceptance-offset is -1"),
        (("--acceptance-offset=5",), "every poll would restart the container; write at least 10"),
        (
            ("--acceptance-offset=20", "--threshold=5"),
            "--threshold belongs to addon-resizer 1.8, and the offsets to 2.x",
        ),
        (("--acceptance-offset=20", "--estimator=linear"), "--estimator belongs to addon-resizer 1.8"),
        (("--minClusterSize=1",), "--minClusterSize is 1: write at least 2"),
        (("--estimator=cubic",), "--estimator: 'cubic' is not allowed: write linear or exponential"),
        (("--poll-period=0",), "--poll-period is 0: write 1 to 31536000000 milliseconds"),
        ((f"--poll-period={'9' * 400}",), "9…: write 1 to 31536000000"),
        (("--cpu=1x",), "--cpu or --extra-cpu: '1x' is not a quantity"),
        (("--extra-memory=-1Mi",), "--memory or --extra-memory: -1Mi is below 0"),
        (("--run-on-control-plane",), "--nanny-config-map-name and --run-on-control-plane belong together"),
        (("--namespace=A",), "--namespace: 'A' is not a namespace"),
        (("--pod=a/b",), "--pod is 'a/b'"),
        (("--deployment=a/b",), "--deployment is 'a/b'"),
        (
            (
                "--run-on-control-plane",
                "--nanny-config-map-name=n",
                "--leader-election-enable",
                "--leader-election-renew-deadline=20s",
            ),
            "the Lease must be longer than the deadline",
        ),
    ],
)
def test_flags_that_cannot_work_are_refused_at_startup(flags: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        settings("--deployment=a", *flags)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("timing", "seconds"),
    [
        (LeaseTiming(), 2.83),
        (LeaseTiming(lease_seconds=3, renew_deadline_seconds=2.0, retry_seconds=0.5), 0.57),
    ],
)
def test_a_patch_has_the_time_that_the_lease_leaves(timing: LeaseTiming, seconds: float) -> None:
    assert write_seconds(timing) == pytest.approx(seconds, abs=0.01)


@pytest.mark.parametrize("deadline", [14.0, 14.9])
def test_a_lease_that_leaves_no_time_for_a_patch_is_refused(deadline: float) -> None:
    with pytest.raises(UsageError, match=r"too short for a write: write at most 13\.5s, or a"):
        write_seconds(LeaseTiming(renew_deadline_seconds=deadline))


@pytest.mark.parametrize(
    ("flags", "ports"),
    [
        ((), [8080]),
        (("--threshold=5",), [8080]),
        (("--expose-metrics",), [8080, 8945]),
        (("--acceptance-offset=20",), []),
        (("--recommendation-offset=5", "--healthcheck-address=:8081"), [8081]),
    ],
)
def test_offsets_of_addon_resizer_2_open_no_port_as_there(flags: tuple[str, ...], ports: list[int]) -> None:
    values = parse_flags(POD_NANNY, ("--deployment=a", *flags), {})
    assert [address.port for address in addresses_of(values)] == ports
