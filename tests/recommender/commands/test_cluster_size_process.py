"""Timers of a cluster size continue after the recommender was killed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from recommender.decisions.memory import Memory
from recommender.kinds.cluster_size.model.memory import ClusterSizeMemory, restore_memory
from recommender.running.memory.folder_store import FolderMemoryStore
from tests.recommender.commands.test_recommend_cluster_size import GROUPS, node, pod, workload
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import Recommender, forked_recommender
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

NINE_MINUTES = 540.0
SECOND = "a1"
"""The node that may be removed; the group keeps the other one, which is its minimum."""


def removals(running: Recommender) -> dict[str, bool]:
    item = running.items().get("workers", {})
    return {one["node"]: one["due"] for one in item.get("removals") or ()}


def test_a_timer_at_nine_of_ten_minutes_survives_a_kill(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    items = [node("a0", "a", "4"), node(SECOND, "a", "4"), pod("web-5d4f-0", "web-5d4f", on="a0")]
    items += [workload("ReplicaSet", "web-5d4f", 1)]
    (tmp_path / "objects" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    top = f"pollInterval: 1s\nstate: {tmp_path}/state\n"
    (tmp_path / "r.yaml").write_text(whole(entry("workers", kind=GROUPS), top=top))
    arguments = ("run", f"--config={tmp_path}/r.yaml", f"--objects={tmp_path}/objects")
    store = FolderMemoryStore(tmp_path / "state")
    since = time.time() - NINE_MINUTES
    begun = Memory(own=ClusterSizeMemory(unneeded_since={"a0": since, SECOND: since}))
    assert store.save("workers", begun, urgent=True)

    first = forked_recommender(tmp_path / "recommender.log", *arguments)
    with first.process:
        waiting = until(lambda: removals(first))
        first.process.kill()
    stored = FolderMemoryStore(tmp_path / "state").load("workers")
    assert set(waiting.values()) == {False}
    assert stored is not None
    own = restore_memory(stored.memory.own)
    assert {own.unneeded_since[name] for name in waiting} == {since}

    # As if the process had been away for the minute that is left.
    past = dict.fromkeys(waiting, since - 60.0)
    store.save("workers", Memory(own=ClusterSizeMemory(unneeded_since=past)), urgent=True)
    second = forked_recommender(tmp_path / "second.log", *arguments)
    with second.process:
        assert until(lambda: any(removals(second).values()))
