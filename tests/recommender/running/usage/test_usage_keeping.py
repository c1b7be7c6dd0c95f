"""Usage of containers that a recommender reads, keeps in files, and continues with."""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from adapter.foundation.sources.prometheus.queries.client import PrometheusClient
from recommender.decisions.record import TargetReference
from recommender.kinds.resources.resources_settings import ResourcesSettings, WorkloadsOfKind
from recommender.running.usage.usage_needs import UsageNeed
from tests.recommender.commands.sized_pods import DAY, END, MIB
from tests.recommender.kinds.resources.reference import end_of_bucket, percentile
from tests.recommender.running.usage.kept_usage import (
    API,
    EACH,
    HISTORY,
    MEMORY,
    NOW,
    OTHER,
    WEB,
    keeper,
    season,
    sizes,
    usage_history,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.running.usage.usage_keeping import UsageKeeper
    from tests.support.prometheus import ScrapedPrometheus


def no_further_part() -> bool:
    """Keep a reading from asking Prometheus for a part of the history."""
    return False


@pytest.fixture(scope="module")
def client(start_prometheus: Callable[..., ScrapedPrometheus]) -> Iterator[PrometheusClient]:
    with PrometheusClient(PrometheusSettings(start_prometheus(history=usage_history()).url)) as found:
        yield found


@pytest.fixture
def kept(client: PrometheusClient, tmp_path: Path) -> UsageKeeper:
    found = keeper(client, tmp_path)
    found.read(EACH)
    return found


def test_the_request_is_the_percentile_of_an_explicitly_computed_histogram(kept: UsageKeeper) -> None:
    samples = [(season(age), float(age)) for age in range(0, 3 * DAY, 300)]
    cpu = sizes(kept)[WEB].cpu
    assert cpu is not None
    assert cpu.target == math.ceil(1150 * percentile(samples, 0.9, 0.01))
    assert cpu.lower < cpu.target < cpu.upper
    assert cpu.request == 1000


def test_workloads_of_other_namespaces_are_not_targets(kept: UsageKeeper) -> None:
    assert sizes(kept).keys() == {WEB, API}


def test_one_killed_pod_of_many_raises_the_memory_of_all(kept: UsageKeeper) -> None:
    memory = sizes(kept)[WEB].memory
    assert memory is not None
    assert memory.target >= 1.2 * 512 * MIB
    assert sizes(kept)[WEB].oom_kills == 1


def test_each_target_has_the_time_of_its_own_newest_sample(kept: UsageKeeper) -> None:
    found = kept.inputs()["sizes"]
    assert not isinstance(found, Unknown)
    assert {usage.time for usage in found.values() if isinstance(usage, Observed)} == {END}


def test_usage_read_in_many_parts_gives_the_same_requests(client: PrometheusClient, tmp_path: Path) -> None:
    at_once, in_parts = keeper(client, tmp_path), keeper(client, tmp_path, NOW - DAY / 2)
    at_once.read(EACH)
    in_parts.read(EACH)
    for minutes in (600, 300, 5, 0):
        in_parts.wall = partial(float, NOW - 60 * minutes)
        in_parts.read(EACH)
    one, other = sizes(at_once)[API], sizes(in_parts)[API]
    assert one.cpu is not None
    assert other.cpu is not None
    assert (one.cpu.target, one.memory) == (other.cpu.target, other.memory)


@pytest.mark.parametrize(
    ("name", "is_removed"), [("shop/sizes", True), ("sizes", False)], ids=["of an object", "of the file"]
)
def test_the_usage_file_of_a_deleted_object_is_deleted_and_that_of_an_entry_stays(
    client: PrometheusClient, tmp_path: Path, name: str, *, is_removed: bool
) -> None:
    need = replace(EACH, name=name)
    kept = keeper(client, tmp_path)
    kept.read(need)
    kept.save()
    kept.keep((), {name})
    assert len([*tmp_path.iterdir()]) == 1, "it is configured for another Prometheus now"
    kept.read(need)
    kept.keep((), ())
    kept.save(is_last=True)
    assert len([*tmp_path.iterdir()]) == (0 if is_removed else 1)


def test_a_restart_continues_with_the_stored_usage(client: PrometheusClient, kept: UsageKeeper, tmp_path: Path) -> None:
    kept.save()
    again = keeper(client, tmp_path)
    assert not any(again.inputs())
    again.read(EACH, no_further_part)
    assert sizes(again) == sizes(kept)


def test_days_in_a_file_of_an_earlier_version_count_as_measured_whole(
    client: PrometheusClient, kept: UsageKeeper, tmp_path: Path
) -> None:
    kept.save()
    (path,) = tmp_path.iterdir()
    with np.load(io.BytesIO(path.read_bytes()[32:])) as arrays:
        former = {name: arrays[name] for name in arrays if name != "measured"}
    content = io.BytesIO()
    np.savez_compressed(content, **former)
    path.write_bytes(hashlib.blake2b(content.getvalue(), digest_size=32).digest() + content.getvalue())
    again = keeper(client, tmp_path)
    again.read(EACH, no_further_part)
    assert sizes(kept)[API].measured_seconds == 2 * DAY
    assert sizes(again)[API].measured_seconds >= 2 * DAY
    unchanged = {target: replace(size, measured_seconds=0.0) for target, size in sizes(kept).items()}
    assert {target: replace(size, measured_seconds=0.0) for target, size in sizes(again).items()} == unchanged


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:-1], lambda _content: b"", lambda content: content[:40] + b"x" + content[41:]],
    ids=["cut off", "empty", "changed"],
)
def test_usage_is_read_again_from_prometheus_if_its_file_is_damaged(
    client: PrometheusClient, kept: UsageKeeper, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    kept.save()
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    again = keeper(client, tmp_path)
    again.read(EACH)
    assert sizes(again) == sizes(kept)


def test_stored_usage_of_other_workloads_is_not_used(
    client: PrometheusClient, kept: UsageKeeper, tmp_path: Path
) -> None:
    kept.save()
    other = replace(EACH, settings=ResourcesSettings(HISTORY, WorkloadsOfKind(namespaces=("lab",))))
    again = keeper(client, tmp_path)
    again.read(other)
    assert sizes(again, other).keys() == {OTHER}


def test_a_named_target_without_usage_is_reported_as_unknown(client: PrometheusClient, tmp_path: Path) -> None:
    absent = TargetReference("apps/v1", "Deployment", "shop", "gone")
    need = UsageNeed("sizes", ResourcesSettings(HISTORY), (WEB, absent), "here")
    found = keeper(client, tmp_path)
    found.read(need)
    assert sizes(found, need).keys() == {WEB}
    inputs = found.inputs()["sizes"]
    assert not isinstance(inputs, Unknown)
    assert isinstance(inputs[absent], Unknown)


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ({"memory": "up{"}, "cannot be read"),
        ({"memory": f'{MEMORY} or label_replace({MEMORY}, "copy", "1", "", "")'}, "several series"),
        ({"cpu": f'{MEMORY} or label_replace({MEMORY}, "copy", "1", "", "")'}, "several series"),
    ],
)
def test_implausible_queries_give_no_size_and_a_reason(
    client: PrometheusClient, tmp_path: Path, queries: dict[str, Any], reason: str
) -> None:
    need = replace(EACH, settings=replace(EACH.settings, from_usage=replace(HISTORY, **queries)))
    found = keeper(client, tmp_path)
    found.read(need)
    unknown = found.inputs()["sizes"]
    assert isinstance(unknown, Unknown)
    assert reason in unknown.reason


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_a_container_with_several_series_affects_only_its_own_workload(
    client: PrometheusClient, tmp_path: Path, resource: str
) -> None:
    usage = "rate(container_cpu_usage_seconds_total{%s}[5m])" if resource == "cpu" else f"{MEMORY}{{%s}}"
    by = "max by (namespace, pod, container)"
    copied = usage % 'pod=~"api.*"'
    query = f'{by} ({usage % ""}) or label_replace({copied}, "copy", "1", "", "")'
    own: dict[str, Any] = {resource: query}
    need = replace(EACH, settings=replace(EACH.settings, from_usage=replace(HISTORY, **own)))
    found = keeper(client, tmp_path)
    found.read(need)
    assert sizes(found, need).keys() == {WEB}
    inputs = found.inputs()["sizes"]
    assert not isinstance(inputs, Unknown)
    api = inputs[API]
    assert isinstance(api, Unknown)
    assert "several series are of container 'app' of pod shop/api-1-a" in api.reason


def test_own_queries_replace_those_of_cadvisor(client: PrometheusClient, tmp_path: Path) -> None:
    by = "max by (namespace, pod, container)"
    own: dict[str, Any] = {
        "cpu": f"2 * {by} (rate(container_cpu_usage_seconds_total[5m]))",
        "memory": f"3 * {by} (container_memory_working_set_bytes)",
    }
    need = replace(EACH, settings=replace(EACH.settings, from_usage=replace(HISTORY, **own)))
    found = keeper(client, tmp_path)
    found.read(need)
    api = sizes(found, need)[API]
    assert api.cpu is not None
    assert api.memory is not None
    assert api.cpu.target == math.ceil(1150 * end_of_bucket(0.6, 0.01))
    assert api.memory.target == math.ceil(1.15 * end_of_bucket(300 * MIB, 1e7) / MIB) * MIB


def test_known_usage_is_kept_when_prometheus_fails(kept: UsageKeeper) -> None:
    before = kept.inputs()["sizes"]
    kept.client = lambda _need: None
    kept.wall = lambda: NOW + 300
    kept.read(EACH)
    assert kept.inputs()["sizes"] == before


@pytest.mark.parametrize("is_stored", [False, True])
def test_usage_is_read_again_after_a_clock_that_was_ahead_is_set_back(kept: UsageKeeper, *, is_stored: bool) -> None:
    if is_stored:
        kept.save(is_last=True)
    kept.wall = lambda: NOW - DAY
    assert kept.due(EACH)
    kept.read(EACH)
    found = kept.inputs()[EACH.name]
    assert not isinstance(found, Unknown)
    web = found[WEB]
    assert isinstance(web, Observed)
    assert NOW - DAY - 600 < web.time <= NOW - DAY
    assert not kept.due(EACH)


def test_usage_stays_known_while_the_clock_is_behind(kept: UsageKeeper) -> None:
    before, wrong = sizes(kept), NOW - 90 * DAY
    kept.wall = lambda: wrong
    assert kept.due(EACH)
    kept.read(EACH)
    assert not kept.due(EACH), "Prometheus has no usage of this time"
    kept.wall = lambda: wrong + 61.0
    assert kept.due(EACH)
    assert sizes(kept) == before
    kept.wall = lambda: NOW
    assert not kept.due(EACH)
    kept.read(EACH)
    assert sizes(kept) == before


def test_targets_without_new_samples_keep_their_time(kept: UsageKeeper) -> None:
    kept.wall = lambda: NOW + 3600
    kept.read(EACH)
    found = kept.inputs()["sizes"]
    assert not isinstance(found, Unknown)
    assert all(usage.time <= END + 300 for usage in found.values() if isinstance(usage, Observed))


@pytest.mark.parametrize("ahead", [3600.0, 30.0 * DAY], ids=["nothing is scraped", "the clock was set ahead"])
def test_an_answer_without_any_usage_changes_nothing_and_is_requested_again(
    kept: UsageKeeper, tmp_path: Path, ahead: float
) -> None:
    before = sizes(kept)
    kept.wall = lambda: NOW + ahead
    kept.read(EACH)
    assert sizes(kept) == before
    assert not kept.due(EACH)
    kept.save(is_last=True)
    kept.wall = lambda: NOW + 300
    assert kept.due(EACH)
    again = keeper(kept.client(EACH), tmp_path)
    again.read(EACH)
    assert sizes(again) == before
