"""Polls of `pod-nanny` with a scripted API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from recommender.commands.pod_nanny.flags import POD_NANNY
from recommender.commands.pod_nanny.followed_parameters import followed_parameters
from recommender.commands.pod_nanny.poll import NannyPoll
from recommender.commands.pod_nanny.resized_container import WardClient
from recommender.commands.pod_nanny.settings import settings_of
from recommender.commands.vertical.polls import PollError
from tests.recommender.commands.cluster_harness import put_nodes
from tests.recommender.commands.vertical.harness import (
    NAME,
    NAMESPACE,
    Clock,
    client_of,
    deployment_of,
    patches,
    resources_of,
)
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = "apiVersion: nannyconfig/v1alpha1\nkind: NannyConfiguration\n"
SIZES = ("--cpu=300m", "--extra-cpu=20m", "--memory=200Mi", "--extra-memory=10Mi", "--threshold=5")
AT_TWO_NODES = {"cpu": "340m", "memory": "220Mi"}


class Harness:
    """A server with nodes and a Deployment, and polls with these flags."""

    def __init__(self, server: ObjectApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.clock = Clock()

    def poll_of(self, *flags: str, fence: Fence | None = None) -> NannyPoll:
        line = (f"--deployment={NAME}", f"--namespace={NAMESPACE}", "--container=main", *flags)
        settings = settings_of(parse_flags(POD_NANNY, line, {}), {})
        client = client_of(self.server, self.folder)
        objects = ObjectClient(client)
        ward = WardClient(client, objects, settings.ward, fence)
        return NannyPoll(settings, followed_parameters(settings, objects), client, ward, self.clock)

    def sizes(self) -> dict[str, str]:
        found = resources_of(self.server)
        assert found["requests"] == found["limits"]
        sizes: dict[str, str] = found["requests"]
        return sizes


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with ObjectApiServer() as server:
        deployment_of(server, requests=dict(AT_TWO_NODES), limits=dict(AT_TWO_NODES))
        put_nodes(server, 2)
        yield Harness(server, tmp_path)


def test_sizes_change_only_beyond_the_threshold(harness: Harness) -> None:
    poll = harness.poll_of(*SIZES)
    assert poll.poll() == "resources_within_limits"
    put_nodes(harness.server, 3)
    assert (poll.poll(), harness.sizes()) == ("updated_resources", {"cpu": "360m", "memory": "230Mi"})
    assert (poll.poll(), patches(harness.server)) == ("resources_within_limits", 1)


def test_offsets_select_the_nearer_bound_and_leave_other_resources_unchanged(harness: Harness) -> None:
    amounts = {"cpu": "100m", "memory": "220Mi", "ephemeral-storage": "1Gi"}
    deployment_of(harness.server, requests=dict(amounts), limits=dict(amounts))
    poll = harness.poll_of(*SIZES[:4], "--acceptance-offset=50", "--recommendation-offset=40")
    assert poll.poll() == "updated_resources"
    assert harness.sizes() == {"cpu": "320m", "memory": "210Mi", "ephemeral-storage": "1Gi"}
    assert poll.poll() == "resources_within_limits"


def test_a_size_that_the_api_server_rounds_up_delays_no_other(harness: Harness) -> None:
    amounts = {"cpu": "42m", "memory": "200Mi"}
    deployment_of(harness.server, requests=dict(amounts), limits=dict(amounts))
    sizes = ("--cpu=40m", "--extra-cpu=0.5m", "--memory=200Mi", "--extra-memory=10Mi", "--scale-down-delay=24h")
    put_nodes(harness.server, 3)
    assert (harness.poll_of(*sizes).poll(), harness.sizes()["memory"]) == ("updated_resources", "230Mi")


def test_a_delay_counts_from_the_start_and_from_the_last_change(harness: Harness) -> None:
    poll = harness.poll_of(*SIZES, "--scale-down-delay=1h")
    put_nodes(harness.server, 40)
    assert poll.poll() == "updated_resources"
    put_nodes(harness.server, 2)
    harness.clock.now = 3599.0
    assert (poll.poll(), harness.sizes()["cpu"]) == ("scale_up_down_delay", "1100m")
    harness.clock.now = 3600.0
    assert (poll.poll(), harness.sizes()) == ("updated_resources", AT_TWO_NODES)


@pytest.mark.parametrize("flags", [SIZES, (*SIZES[:4], "--acceptance-offset=20")], ids=["1.8", "2.x"])
def test_the_first_empty_list_changes_nothing(harness: Harness, flags: tuple[str, ...]) -> None:
    poll = harness.poll_of(*flags)
    put_nodes(harness.server, 0)
    with pytest.raises(PollError, match="the cluster looks empty"):
        poll.poll()
    assert harness.sizes() == AT_TWO_NODES


def test_a_second_empty_list_gives_the_base_size_with_1_8_and_fails_with_2(harness: Harness) -> None:
    polls = harness.poll_of(*SIZES[:4], "--acceptance-offset=20"), harness.poll_of(*SIZES)
    put_nodes(harness.server, 0)
    for poll in polls:
        with pytest.raises(PollError, match="the cluster looks empty"):
            poll.poll()
    harness.clock.now = 30.0
    with pytest.raises(PollError, match="as in addon-resizer 2"):
        polls[0].poll()
    assert (polls[1].poll(), harness.sizes()) == ("updated_resources", {"cpu": "300m", "memory": "200Mi"})


def test_a_changed_file_takes_effect_and_a_broken_one_keeps_the_last_good_values(harness: Harness) -> None:
    file = harness.folder / "NannyConfiguration"
    poll = harness.poll_of(*SIZES, f"--config-dir={harness.folder}")
    assert poll.poll() == "resources_within_limits"
    file.write_text(f"{HEAD}baseCPU: 600m\n")
    assert (poll.poll(), harness.sizes()["cpu"]) == ("updated_resources", "640m")
    file.write_text(f"{HEAD}baseCPU: 1x\n")
    put_nodes(harness.server, 12)
    assert (poll.poll(), harness.sizes()["cpu"]) == ("updated_resources", "840m")
    file.unlink()
    assert poll.poll() == "resources_within_limits"


def test_the_flags_are_used_if_the_file_is_broken_from_the_start(harness: Harness) -> None:
    (harness.folder / "NannyConfiguration").write_text("baseCPU: 9")
    assert harness.poll_of(*SIZES, f"--config-dir={harness.folder}").poll() == "resources_within_limits"


def test_an_unreadable_config_map_keeps_the_last_good_values(harness: Harness) -> None:
    objects = harness.server.objects
    content = {"kind": "ConfigMap", "data": {"NannyConfiguration": f"{HEAD}baseCPU: 1\n"}}
    objects.put(CONFIG_MAPS, NAMESPACE, "nanny", content)
    poll = harness.poll_of(*SIZES, "--run-on-control-plane", "--nanny-config-map-name=nanny")
    objects.deny("get", "configmaps")
    with pytest.raises(PollError, match="403 Forbidden"):
        poll.poll()
    objects.allow("get", "configmaps")
    assert (poll.poll(), harness.sizes()["cpu"]) == ("updated_resources", "1040m")
    objects.deny("get", "configmaps")
    assert poll.poll() == "resources_within_limits"


def test_nothing_is_written_without_a_base_size(harness: Harness) -> None:
    with pytest.raises(PollError, match="neither the flags nor a configuration give a base: write --cpu or --memory"):
        harness.poll_of("--extra-cpu=1m").poll()


def test_a_missing_container_is_an_error(harness: Harness) -> None:
    with pytest.raises(PollError, match="has no container 'nobody': name one of its containers in --container"):
        harness.poll_of(*SIZES, "--container=nobody").poll()


@pytest.mark.parametrize(
    ("verb", "plural", "outcome"),
    [
        ("list", "nodes", "error_getting_count"),
        ("get", "deployments", "error_getting_resources"),
        ("patch", "deployments", "error_updating_deployment"),
    ],
)
def test_a_failed_call_has_the_same_outcome_as_in_addon_resizer(
    harness: Harness, verb: str, plural: str, outcome: str
) -> None:
    put_nodes(harness.server, 3)
    if plural == "nodes":
        harness.server.forbid(verb, plural)
    else:
        harness.server.objects.deny(verb, plural)
    with pytest.raises(PollError, match="403 Forbidden") as failed:
        harness.poll_of(*SIZES).poll()
    assert failed.value.outcome == outcome


def test_a_follower_writes_nothing(harness: Harness) -> None:
    put_nodes(harness.server, 9)
    assert harness.poll_of(*SIZES, fence=Fence(2.0, lambda _: False)).poll() == "not_leading"
    assert patches(harness.server) == 0


def test_a_delay_counts_from_the_moment_at_which_the_process_leads(harness: Harness) -> None:
    leading: list[str] = []
    poll = harness.poll_of(*SIZES, "--scale-down-delay=1h", fence=Fence(2.0, lambda _: bool(leading)))
    put_nodes(harness.server, 1)
    harness.clock.now = 86_400.0
    poll.poll()
    leading.append("this process")
    harness.clock.now = 89_999.0
    assert (poll.poll(), harness.sizes()) == ("scale_up_down_delay", AT_TWO_NODES)
    harness.clock.now = 90_000.0
    assert (poll.poll(), harness.sizes()["cpu"]) == ("updated_resources", "320m")


def test_a_dry_run_writes_nothing(harness: Harness) -> None:
    put_nodes(harness.server, 9)
    assert (harness.poll_of(*SIZES, "--dry-run").poll(), patches(harness.server)) == ("dry_run", 0)
