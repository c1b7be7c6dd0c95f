"""A recommender that is killed continues after its restart with the models that it had chosen."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import Recommender, forked_recommender
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

SPAN_SECONDS = 38 * 3_600
"""After a day the best model leads headroom so narrowly that the time of the start decides. From two days on, models of
seasons would be fitted too."""
STEP_SECONDS = 60
NOISE = "predictive: {load: sum(connections), loadPerReplica: 10, horizon: 2m, history: 37h, maxReplicas: 999}"
TARGETS = "targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]"
CHOSEN_SECONDS = 400.0
"""The child that fits and compares models has a low priority: its 8 s can take minutes beside other load."""

pytestmark = pytest.mark.timeout(660)


def noise(now: float) -> str:
    """Return recorded load that is noise around a level: the last hour's maximum predicts it best."""
    rng = np.random.default_rng(3)
    ages = range(SPAN_SECONDS, -600, -STEP_SECONDS)
    loads = rng.uniform(500, 2000, len(ages))
    lines = (f"connections {load:.0f} {now - ago}" for ago, load in zip(ages, loads, strict=True))
    return "\n".join(["# TYPE connections gauge", *lines, "# EOF", ""])


def item_of(recommender: Recommender) -> dict[str, Any]:
    found = recommender.items().get("noise") or {}
    return found if found.get("load") else {}


def test_chosen_models_are_used_again_after_a_kill(
    start_prometheus: Callable[..., ScrapedPrometheus], tmp_path: Path
) -> None:
    prometheus = start_prometheus(history=noise(time.time()))
    top = f"pollInterval: 30s\nstate: {tmp_path}/state\nprometheus: {{url: '{prometheus.url}'}}\n"
    (tmp_path / "recommender.yaml").write_text(
        whole(entry("noise", NOISE, TARGETS, "outputs: [metric]", kind=""), top=top)
    )
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    arguments = ("run", f"--config={tmp_path}/recommender.yaml", f"--objects={tmp_path}/objects")

    with (first := forked_recommender(tmp_path / "first.log", *arguments)).process:
        before = until(
            lambda: (found := item_of(first)).get("model", "headroom") != "headroom" and found, CHOSEN_SECONDS
        )
        assert before
        # The choice is published, and then stored by another thread.
        assert until(lambda: list((tmp_path / "state" / "loads").glob("*.verdicts.json")))
        first.process.kill()

    with (second := forked_recommender(tmp_path / "second.log", *arguments)).process:
        item = until(lambda: item_of(second))
        assert "not been compared" not in item["model_reason"]
        assert item["cost_as_headroom_ratio"] == before["cost_as_headroom_ratio"]
        after = until(lambda: (found := item_of(second)).get("model") == before["model"] and found, 150.0)
        assert after
        assert after["model_reason"] == before["model_reason"]
