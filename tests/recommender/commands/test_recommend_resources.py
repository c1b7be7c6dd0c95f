"""`recommend` with sizes that follow usage: a real Prometheus, and the cluster from a file."""

from __future__ import annotations

import json
import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from recommender.commands.main import main
from tests.recommender.commands.sized_pods import DAY, MIB, Exposition, SizedPod
from tests.recommender.configuration.files import entry, whole
from tests.recommender.kinds.resources.reference import end_of_bucket

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

HPA: dict[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"namespace": "shop", "name": "api"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"},
        "maxReplicas": 9,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}],
    },
}


def _flat(value: float, _age: int) -> float:
    return value


@pytest.fixture(scope="module")
def url(start_prometheus: Callable[..., ScrapedPrometheus]) -> str:
    found = Exposition(int(time.time()))
    for name, cores in (("web", 0.2), ("api", 0.4)):
        found.add_pod(
            SizedPod(
                "shop", f"{name}-1-a", ("ReplicaSet", f"{name}-1"), partial(_flat, cores),
                partial(_flat, 300.0 * MIB), requests={"cpu": 1.0, "memory": 2.0**30},
            )
        )  # fmt: skip
        found.add_replica_set("shop", f"{name}-1", name)
    return start_prometheus(history=found.text()).url


def test_each_workload_is_sized_from_its_usage_and_the_hpa_keeps_its_request(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = entry("sizes", kind="resources: {fromUsage: {history: 1d}, forEach: {namespaces: [shop]}}")
    top = f"state: {tmp_path}\nprometheus: {{url: '{url}'}}\n"
    (tmp_path / "recommender.yaml").write_text(whole(sizes, top=top))
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [HPA]}))
    files = ("--config", str(tmp_path / "recommender.yaml"), "--cluster", str(tmp_path / "cluster.json"))
    with pytest.raises(SystemExit) as ended:
        main(["recommend", *files, "-o", "json"])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.err) == (0, "")
    api, web = json.loads(printed.out)["items"]
    assert (web["status"], api["status"]) == ("ok", "held")
    expected = math.ceil(1150 * end_of_bucket(0.2, 0.01))
    assert web["resources"]["app"]["requests"]["cpu"] == f"{expected}m"
    assert api["resources"]["app"]["requests"]["cpu"] == "1"
    assert "HorizontalPodAutoscaler api follows cpu" in api["message"]
    assert web["inputs"]["history_seconds"] == pytest.approx(DAY, abs=600)
