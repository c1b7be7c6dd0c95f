"""Memories in the format before schema version 5: files that a former version wrote are read once and rewritten."""

from __future__ import annotations

import base64
import json
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.decisions.memory import LastValue, Memory
from recommender.decisions.record import TargetReference
from recommender.kinds.cluster_size.model.memory import Absence, AskedSize, BackOff, ClusterSizeMemory, RequestedNodes
from recommender.kinds.predictive.policy.memory import PolicyMemory, ReconnectMemory, SessionMemory
from recommender.kinds.proportional.memory import LastParameters, ProportionalMemory
from recommender.running.memory.config_map_documents import LABELS
from recommender.running.memory.config_map_store import ConfigMapMemoryStore
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memories import Memories
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Mapping

FILES: Final = Path(__file__).with_name("former")
NOW: Final = 1_790_000_000.0
WHOLE: Final[Mapping[str, Memory]] = {
    "coredns": Memory(
        LastValue(3, NOW, NOW - 4.5),
        (NOW - 1800.0, NOW - 60.0),
        ProportionalMemory(
            LastParameters("ladder", '{"nodesToReplicas": [[1, 1], [3, 7]]}', "42"),
            {"ladder/cores": 2, "ladder/nodes": 3},
        ),
    ),
    "doubted": Memory(LastValue(4, NOW, NOW - 1.0), known={"nodes": 7, "HPAs of the target": 1}),
    "gateway": Memory(
        LastValue(10, NOW, NOW - 2.0),
        (NOW - 600.0,),
        PolicyMemory(
            time=NOW,
            capacity=9.5,
            desired_sizes=((NOW - 300.0, 12), (NOW - 20.0, 10)),
            reconnect=ReconnectMemory(((NOW - 30.0, 3e9), (NOW - 5.0, 180.5)), NOW + 120.0),
            sessions=SessionMemory((("gateway-1", 60.0), ("gateway-2", 12.0)), 5400.0, 45.0),
        ),
    ),
    "workers": Memory(
        LastValue(None, NOW, NOW - 3.0),
        (NOW - 1000.0, NOW - 10.0),
        ClusterSizeMemory(
            unneeded_since={"node-a": NOW - 500.0},
            last_scale_up=NOW - 900.0,
            last_delete=NOW - 800.0,
            last_failure=NOW - 700.0,
            requested={"small": RequestedNodes(5, NOW - 90.0)},
            asked={"large": AskedSize(3, 2, NOW - 10.0), "small": AskedSize(4, 5, NOW - 5.0, removes=True)},
            back_offs={"spot": BackOff(NOW + 300.0, 300.0, NOW - 1.0, "no nodes came within 900 s")},
            sizes={"small": 5, "large": 3},
            absences=(Absence(NOW - 7200.0, NOW - 7000.0),),
        ),
    ),
}
SHARDS: Final = {"one-shard": 5, "four-shards": 40, "growing": 40}
"""How many targets are in them; in `growing`, a crash has left shards of two and of four."""


def targets(count: int) -> Memory:
    return Memory(
        by_target={
            TargetReference("apps/v1", "Deployment", f"team-{number % 7}", f"web-{number}"): Memory(
                LastValue(number % 9, NOW, NOW - 1.0),
                own=PolicyMemory(
                    time=NOW,
                    capacity=float(number % 9),
                    desired_sizes=((NOW - 20.0, number % 9),),
                    reconnect=ReconnectMemory(((NOW - 5.0, float(number)),)),
                ),
            )
            for number in range(count)
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FILES, tmp_path / "state"))


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_of_a_former_version_is_read_correctly_and_rewritten(folder: Path, name: str) -> None:
    memories = Memories(FolderMemoryStore(folder))
    assert memories.load(name) == WHOLE[name]
    memories.remember(name, WHOLE[name])
    document = json.loads((folder / f"tidewatch-recommender-{name}.json").read_text())
    assert document["schemaVersion"] == 5
    assert Memories(FolderMemoryStore(folder)).load(name) == WHOLE[name]


@pytest.mark.parametrize("name", SHARDS)
@pytest.mark.parametrize("count", [32, 64])
def test_shards_of_a_former_version_are_read_whatever_their_number(folder: Path, name: str, count: int) -> None:
    for _ in range(2):
        memories = Memories(FolderMemoryStore(folder))
        memories.begin((name,), math.inf, {name: count})
        assert memories.load(name).by_target.keys() == targets(SHARDS[name]).by_target.keys()
        if name != "growing":
            assert memories.load(name) == targets(SHARDS[name])


def test_config_maps_of_a_former_version_are_read_and_rewritten() -> None:
    objects = ObjectStore()
    for file in FILES.iterdir():
        name, _, suffix = file.name.partition(".")
        content = file.read_bytes()
        part = (
            {"data": {"memory.json": content.decode()}}
            if suffix == "json"
            else {"binaryData": {"memory.json.gz": base64.b64encode(content).decode()}}
        )
        metadata = {"name": name, "namespace": "monitoring", "labels": LABELS}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **part}
        objects.create(CONFIG_MAPS, "monitoring", document)
    store = ConfigMapMemoryStore(Direct(objects), "monitoring", Fence(2.0, lambda _seconds: True))
    memories = Memories(store)
    memories.begin((*WHOLE, "four-shards"), math.inf, {"four-shards": 32})
    assert {name: memories.load(name) for name in WHOLE} == WHOLE
    assert memories.load("four-shards") == targets(40)
    for name, memory in WHOLE.items():
        memories.remember(name, memory)
    store.flush()
    stored = objects.listed(CONFIG_MAPS)
    documents = {each["metadata"]["name"]: each["data"]["memory.json"] for each in stored if "data" in each}
    assert {json.loads(text)["schemaVersion"] for text in documents.values()} == {5}
