"""Polls of `cpva` with a scripted API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.commands.cpva.flags import CPVA
from recommender.commands.cpva.followed_config import FollowedConfig
from recommender.commands.cpva.poll import CpvaPoll
from recommender.commands.cpva.settings import settings_of
from recommender.commands.vertical.cluster_sizes import nodes_and_cores
from recommender.commands.vertical.polls import PollError
from tests.recommender.commands.cluster_harness import put_nodes
from tests.recommender.commands.vertical.harness import NAME, NAMESPACE, client_of, deployment_of, patches, resources_of
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = '{"main": {"requests": {"cpu": {"base": "100m", "step": "100m", "nodesPerStep": 1}}}}'


@pytest.fixture
def server() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as server:
        deployment_of(server, limits={"memory": "1Gi"})
        server.objects.deny("get", "deployments")
        yield server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(FILE)
    return path


def poll_of(server: ObjectApiServer, config: Path, *flags: str) -> CpvaPoll:
    line = (f"--target=deployment/{NAME}", f"--namespace={NAMESPACE}", f"--config-file={config}", *flags)
    settings = settings_of(parse_flags(CPVA, line, {}), {})
    client = client_of(server, config.parent)
    return CpvaPoll(settings, FollowedConfig(settings.defaults, settings.config_file), client, ObjectClient(client))


def cpu(server: ObjectApiServer) -> str | None:
    found = resources_of(server)
    assert found["limits"] == {"memory": "1Gi"}
    text: str | None = found.get("requests", {}).get("cpu")
    return text


def test_the_sizes_follow_the_nodes_and_are_written_only_when_they_change(
    server: ObjectApiServer, config: Path
) -> None:
    put_nodes(server, 3)
    poll = poll_of(server, config)
    assert [poll.poll(), poll.poll()] == ["updated", "unchanged"]
    assert (cpu(server), patches(server)) == ("400m", 1)
    put_nodes(server, 1)
    assert (poll.poll(), cpu(server)) == ("updated", "200m")


def test_all_cores_of_the_capacity_count_and_are_rounded_up(server: ObjectApiServer, tmp_path: Path) -> None:
    put_nodes(server, 3)
    size = nodes_and_cores(client_of(server, tmp_path))
    assert (size.nodes, size.cores) == (3, 14)


def test_sizes_stay_if_the_cluster_looks_empty(server: ObjectApiServer, config: Path) -> None:
    put_nodes(server, 3)
    poll = poll_of(server, config)
    poll.poll()
    put_nodes(server, 0)
    for _ in range(3):
        with pytest.raises(PollError, match="the cluster looks empty: the sizes stay until a second list"):
            poll.poll()
    assert cpu(server) == "400m"


def test_a_refused_patch_is_sent_again(server: ObjectApiServer, config: Path) -> None:
    put_nodes(server, 3)
    poll = poll_of(server, config)
    server.objects.deny("patch", "deployments")
    with pytest.raises(PollError, match="403 Forbidden"):
        poll.poll()
    server.objects.allow("patch", "deployments")
    assert (poll.poll(), cpu(server)) == ("updated", "400m")


def test_a_broken_file_keeps_the_last_good_sizes(server: ObjectApiServer, config: Path) -> None:
    put_nodes(server, 3)
    poll = poll_of(server, config)
    poll.poll()
    config.write_text("{")
    put_nodes(server, 4)
    assert (poll.poll(), cpu(server)) == ("updated", "500m")
    config.unlink()
    assert poll.poll() == "unchanged"
    config.write_text(FILE.replace('"step": "100m"', '"step": "50m"'))
    assert (poll.poll(), cpu(server)) == ("updated", "300m")


def test_without_its_file_nothing_is_written_even_if_there_are_defaults(server: ObjectApiServer, config: Path) -> None:
    put_nodes(server, 3)
    config.unlink()
    poll = poll_of(server, config, f"--default-config={FILE}")
    with pytest.raises(PollError, match="cannot read the file"):
        poll.poll()
    assert patches(server) == 0


def test_a_dry_run_writes_nothing(server: ObjectApiServer, config: Path) -> None:
    put_nodes(server, 3)
    poll = poll_of(server, config, "--dry-run")
    assert [poll.poll(), poll.poll(), patches(server)] == ["dry_run", "unchanged", 0]
