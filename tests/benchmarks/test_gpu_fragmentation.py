"""The simulation of a GPU cluster: its lists, its policies, and what it reports."""

from __future__ import annotations

import io
import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from adapter.nodes.model.workload import GpuPodKind
from benchmarks.gpu_choices import Kinds
from benchmarks.gpu_cluster import GpuCluster
from benchmarks.gpu_fragmentation import Settings, main, measure
from benchmarks.gpu_lists import Arrival, GpuNode, ListError, arrivals, read_nodes, read_pods
from benchmarks.gpu_policies import packing_points, policies
from benchmarks.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

NODES = (
    GpuNode(96_000, 768_000, 8),
    GpuNode(32_000, 256_000, 2),
    GpuNode(64_000, 512_000, 0),
    GpuNode(16_000, 64_000, 2),
)
PODS = (
    *[Arrival(GpuPodKind(8000, 1, 1000), 16_000)] * 4,
    *[Arrival(GpuPodKind(4000, 1, 470), 8000)] * 3,
    Arrival(GpuPodKind(16_000, 2, 1000), 32_000),
    Arrival(GpuPodKind(8000, 0, 0), 8000),
)
NODE_LIST = "sn,cpu_milli,memory_mib,gpu\nn0,96000,768000,8\nn1,32000,256000,0\n"
POD_LIST = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,8000,16000,1,470\np1,4000,8000,0,\n"


@pytest.mark.parametrize(
    ("left", "count", "milli", "expected"),
    [
        # The published cases.
        ((200, 500, 1000, 1000), 2, 1000, 48),
        ((1000,) * 8, 2, 1000, 25),
        ((200, 500, 1000, 1000), 2, 200, 93),
        ((1000,) * 4, 1, 1000, 29),
    ],
)
def test_packing_has_the_published_points(left: tuple[int, ...], count: int, milli: int, expected: int) -> None:
    assert packing_points(left, count, milli) == expected


def test_the_list_arrives_whole_and_then_by_draws_until_enough_is_requested() -> None:
    order = arrivals(PODS, 20_000, Random(1))
    assert sorted(order[: len(PODS)]) == sorted(PODS)
    assert sum(pod.gpus_milli for pod in order) >= 20_000 > sum(pod.gpus_milli for pod in order[:-1])
    assert order == arrivals(PODS, 20_000, Random(1)) != arrivals(PODS, 20_000, Random(2))
    assert sum(pod.gpus_milli for pod in arrivals(PODS, 2000, Random(1))) < 4000


@pytest.mark.parametrize("name", list(policies(NODES, PODS)))
def test_no_node_ever_holds_more_than_it_has_and_refused_pods_have_no_room(name: str) -> None:
    cluster = GpuCluster(NODES, policies(NODES, PODS)[name](), Kinds(pod.shape for pod in PODS), Random(3))
    left = cluster.left_milli()
    for pod in arrivals(PODS, 30_000, Random(4)):
        if cluster.place(pod):
            left -= pod.gpus_milli
        assert cluster.left_milli() == left
    assert not cluster.place(PODS[0])


def test_every_policy_sees_the_same_arrivals_and_reports_what_it_allocated() -> None:
    stderr = io.StringIO()
    found = measure(Settings(NODES, PODS, shuffles=2, seed=5), Progress("gpu", stderr))
    assert [row["policy"] for row in found.rows] == [
        "random",
        "dot-product",
        "best-fit",
        "gpu-packing",
        "fgd",
        "gpu-fragmentation",
    ]
    for row in found.rows:
        assert 0 < row["allocated_at_100_percent"] <= row["allocated_at_130_percent"] <= 100
        assert row["published_at_100_percent"] is None
        assert row["errors"] == 0
    assert len(stderr.getvalue().splitlines()) == 2 * len(found.rows)
    again = measure(Settings(NODES, PODS, shuffles=2, seed=5), Progress("gpu", io.StringIO()))
    keys = ("allocated_at_100_percent", "allocated_at_130_percent")
    assert [[row[key] for key in keys] for row in again.rows] == [[row[key] for key in keys] for row in found.rows]


def test_the_command_reads_lists_with_the_named_columns_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, pods, plot = tmp_path / "nodes.csv", tmp_path / "pods.csv", tmp_path / "plot.png"
    nodes.write_text(NODE_LIST)
    pods.write_text(POD_LIST)
    assert main([f"--nodes={nodes}", f"--pods={pods}", "--shuffles=1", f"--plot={plot}", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["name"], len(document["rows"])) == ("BenchmarkReport", "gpu_fragmentation", 6)
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sn,cpu_milli,gpu\n", "line 1: there is no column memory_mib"),
        ("", "there is no column sn"),
        (NODE_LIST + "n2,many,1,1\n", r"nodes.csv:4: cpu_milli is 'many'"),
        (NODE_LIST + "n2,1,1,-1\n", r"nodes.csv:4: gpu is '-1'"),
        (NODE_LIST + "n2,1,1\n", r"nodes.csv:4: gpu is ''"),
        (NODE_LIST + "n2,1,nan,1\n", r"nodes.csv:4: memory_mib is 'nan'"),
        (NODE_LIST + "n2,1,1,9999\n", r"nodes.csv:4: gpu is 9999"),
        ("sn,cpu_milli,memory_mib,gpu\nn0,1,1,0\n", "no node has a GPU"),
    ],
)
def test_a_list_of_nodes_that_cannot_be_used_says_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(ListError, match=problem):
        read_nodes(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (POD_LIST + "p2,1,1,1,\n", "pods.csv:4: gpu_milli is 0"),
        (POD_LIST + "p2,1,1,1,1001\n", "pods.csv:4: gpu_milli is 1001"),
        (POD_LIST + "p2,1,1,0.5,100\n", r"pods.csv:4: num_gpu is '0.5'"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n", "no pod requests a GPU"),
    ],
)
def test_a_list_of_pods_that_cannot_be_used_says_where(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(text)
    with pytest.raises(ListError, match=problem):
        read_pods(path)


def test_files_that_are_not_lists_are_named(tmp_path: Path) -> None:
    with pytest.raises(ListError, match="No such file"):
        read_nodes(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ListError, match="UTF-8"):
        read_nodes(tmp_path / "binary.csv")
