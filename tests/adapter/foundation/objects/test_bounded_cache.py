"""The cache of values made from texts of the cluster keeps its size, whatever tenants write."""

from __future__ import annotations

import gc
import multiprocessing
import re
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.facts.pod_constraints import affinity_of
from adapter.foundation.cluster.facts.pods import shared_labels
from adapter.foundation.cluster.values.constraints import PodTerm
from adapter.foundation.objects.bounded_cache import HELD_BYTES, MEBIBYTE, bounded_cache, bytes_of
from adapter.foundation.objects.selectors import parse_selector
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = MEBIBYTE


def counted(most_bytes: int = MOST) -> tuple[Callable[[str], tuple[str, ...]], list[str]]:
    """Return a cached function and the list of arguments for which the function itself was called."""
    calls: list[str] = []

    @bounded_cache(most_bytes)
    def letters(text: str) -> tuple[str, ...]:
        calls.append(text)
        return (text + "!", text + "?")

    return letters, calls


def held_bytes(cached: object) -> int:
    """Return how much memory a cached function says that it holds."""
    value = getattr(cached, HELD_BYTES)()
    assert isinstance(value, int)
    return value


def test_equal_arguments_have_one_result() -> None:
    cached, calls = counted()
    assert cached("a") is cached("a")
    assert calls == ["a"]


def test_errors_are_not_remembered() -> None:
    calls: list[int] = []

    @bounded_cache(MOST)
    def refuse(number: int) -> int:
        calls.append(number)
        raise ValueError(number)

    for _ in range(2):
        with pytest.raises(ValueError, match="7"):
            refuse(7)
    assert calls == [7, 7]


@pytest.mark.parametrize("length", [100, 1000, 20_000, 200_000])
def test_the_cache_stays_within_its_bytes_for_any_size_of_values(length: int) -> None:
    cached, _ = counted()
    for number in range(3 * MOST // (2 * length + 600) + 20):
        cached(f"{number}" + "x" * length)
        assert held_bytes(cached) <= MOST


def test_large_values_do_not_evict_a_shared_one() -> None:
    cached, calls = counted()
    cached("shared")
    for number in range(50):
        cached(f"{number}" + "x" * MOST)
    cached("shared")
    assert calls.count("shared") == 1


def test_values_that_are_used_again_stay_and_others_are_evicted() -> None:
    cached, calls = counted()
    cached("once")
    for number in range(2000):
        cached("often")
        cached(f"{number}" + "x" * 1000)
    cached("once")
    assert (calls.count("often"), calls.count("once")) == (1, 2)


def test_the_bytes_of_a_value_include_all_its_parts() -> None:
    assert bytes_of(({"a": "y" * 10_000}, ["z" * 10_000])) > 20_000
    assert bytes_of(PodTerm("x" * 10_000, parse_selector("a=" + "y" * 60), frozenset({"z" * 10_000}))) > 20_000


def attack(what: str, number: int) -> None:
    """Convert 1.2 MB of labels (each attack once kept 4.4 MB), or the anti-affinity of a pod with 1,000 terms."""
    if what == "labels":
        shared_labels(tuple((f"{number}-{each}", "v" * 63) for each in range(10_000)))
    else:
        term = b'{"topologyKey":"n%d","labelSelector":{"matchLabels":{"a":"b"}}}' % number
        terms = b",".join([term] * 1_000)
        kind = b'{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":['
        affinity_of(kind + terms + b"]}}", "evil", ())


def kept_bytes(what: str) -> int:
    """Return how much memory five attacks leave behind."""
    attack(what, 0)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 6):
            attack(what, number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", ["labels", "affinity"])
def test_pods_that_are_created_and_deleted_leave_little_memory_in_use(what: str) -> None:
    # In a process of its own: how far the table of interned texts grows depends on what else a process has read.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        kept = pool.apply(kept_bytes, (what,))
    assert kept < 4 * MEBIBYTE  # of 22 MiB; the table of interned texts stays


def test_no_cache_of_tenant_values_is_bounded_by_number_of_entries() -> None:
    folders = ("adapter/foundation/cluster", "adapter/nodes", "adapter/foundation/objects", "recommender")
    found = [
        str(path.relative_to(CHECKOUT))
        for folder in folders
        for path in sorted((CHECKOUT / folder).rglob("*.py"))
        if re.search(r"\blru_cache\b|^@cache\b", path.read_text(), re.MULTILINE)
    ]
    # Fields of each class, the decoder of each form and whether it has a kind, the keys of each kind of entry, one
    # object for the process, and of GPU pods four workloads of at most 128 kinds, with the worth of a hundred shares.
    assert found == [
        "adapter/nodes/scores/gpus/gpu_fragmentation.py",
        "adapter/nodes/scores/gpus/gpu_value.py",
        "adapter/foundation/objects/bounded_cache.py",
        "adapter/foundation/objects/decoders.py",
        "adapter/foundation/objects/metadata.py",
        "recommender/configuration/entry.py",
        "recommender/kinds/predictive/models/boosting.py",
    ]
