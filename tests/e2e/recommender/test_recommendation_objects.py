"""Objects of the kind Recommendation on the real API server, with exactly the rights that the configuration needs."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from recommender.configuration.objects.definition import definition
from recommender.configuration.reading import read_configuration
from recommender.configuration.rights import rights_of
from recommender.running.memory.store_protocol import memory_object_name
from tests.e2e.controlplane.client import ApiError
from tests.e2e.support.figures import state
from tests.e2e.support.recommenders import Pool, Workload, rule, service_account
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recommender.kinds.role_rules import RoleRule
    from tests.e2e.controlplane.client import Document
    from tests.e2e.controlplane.cluster import Cluster
    from tests.support.recommenders import Recommender

__all__ = ["state"]

pytestmark = pytest.mark.timeout(300)

API_VERSION: Final = "tidewatch.io/v1alpha1"
OBJECTS: Final = """\
prometheus: {url: http://127.0.0.1:9}
recommendationObjects: {enabled: true, outputs: [metric, scale]}
"""


@dataclass(slots=True)
class Scene:
    """A recommender that follows objects, and the namespace of a team."""

    cluster: Cluster
    namespace: str
    folder: Path
    pool: Pool
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def path(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/recommendations"

    def install(self) -> None:
        """Install the kind, and wait until it is served."""
        self.cluster.apply(definition())
        self.cluster.kubectl("wait", "--for=condition=Established", "crd/recommendations.tidewatch.io")

    def workload(self, name: str, replicas: int = 1) -> Workload:
        found = Workload(self.cluster, self.namespace, name)
        found.create(replicas)
        return found

    def spec(self, target: str, **rest: object) -> Document:
        """Return a spec of one replica for each node of the pool."""
        kind = {"linear": {"nodesPerReplica": 1}, "nodeSelector": self.pool.selector}
        targets = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": target}]
        return {"proportional": kind, "targets": targets, "outputs": ["scale"]} | rest

    def create(self, name: str, spec: Document) -> Document:
        """Create an object as kubectl does: unknown keys are refused."""
        body = {"apiVersion": API_VERSION, "kind": "Recommendation", "metadata": {"name": name}, "spec": spec}
        answer = self.cluster.client.ask("POST", self.path, query={"fieldValidation": "Strict"}, body=body)
        if answer.status != 201:
            raise ApiError(name, answer.status, answer.body)
        found: Document = json.loads(answer.body)
        return found

    def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition; empty texts while there is none."""
        status = self.cluster.client.get(f"{self.path}/{name}").get("status", {})
        conditions: list[Document] = status.get("conditions", [])
        found = next((each for each in conditions if each["type"] == kind), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def write_condition(self, name: str, kind: str) -> None:
        """Apply a condition as another field manager does, such as a tool of deployment."""
        condition = {
            "type": kind,
            "status": "True",
            "reason": "OutOfHere",
            "message": "what another manager says",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        document = {
            "apiVersion": API_VERSION,
            "kind": "Recommendation",
            "metadata": {"name": name, "namespace": self.namespace},
            "status": {"conditions": [condition]},
        }
        options = ("--server-side", "--subresource=status", "--field-manager=deployer", "-f", "-")
        self.cluster.kubectl("apply", *options, stdin=json.dumps(document))

    def is_refused(self, name: str, reason: str) -> bool:
        """Return whether an object is refused for this reason."""
        return self.condition(name, "Refused")[:2] == ("True", reason)

    def start(self, *entries: str, poll_interval: str = "1s", objects: str = OBJECTS) -> Recommender:
        """Start a recommender with the rights of its configuration."""
        election = f"leaderElection: {{namespace: {self.namespace}}}\n"
        text = whole(*entries, top=f"pollInterval: {poll_interval}\nstate: {self.folder}/state\n{election}{objects}")
        (self.folder / "recommender.yaml").write_text(text)
        wanted = rights_of(
            read_configuration(text, "r.yaml"),
            namespace=self.namespace,
            resolve=lambda group, kind: find_resource(BUILT_IN, group, kind),
            memory_name=memory_object_name,
        )
        here = [_rule(each) for each in wanted if each.namespace]
        everywhere = [_rule(each) for each in wanted if not each.namespace]
        self.stack.enter_context(
            service_account(self.cluster, self.namespace, "team", self.folder, here=here, everywhere=everywhere)
        )
        found = started(
            self.folder / "run.log",
            "run",
            f"--config={self.folder}/recommender.yaml",
            f"--kubeconfig={self.folder}/team.kubeconfig",
        )
        self.stack.enter_context(found.process)
        return found

    def forbidden(self) -> set[str]:
        """Return the requests of the recommender that were forbidden."""
        user = f"system:serviceaccount:{self.namespace}:team"
        found = [event for event in self.cluster.audit_events() if event.user == user and event.code == 403]
        return {f"{event.verb} {event.uri}" for event in found}


def _rule(right: RoleRule) -> Document:
    resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    return rule([right.api_group], [resource], " ".join(right.verbs), *right.names)


@pytest.fixture
def scene(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    found = Scene(cluster, namespace, tmp_path, Pool(cluster))
    with found.stack:
        yield found
    found.pool.remove()
    cluster.remove_definition("recommendations.tidewatch.io")


def test_an_object_sizes_its_target_until_it_is_deleted(scene: Scene, state: Callable[[str, str], None]) -> None:
    scene.pool.add(3)
    web = scene.workload("web")
    scene.install()
    program = scene.start(poll_interval="5s")
    scene.create("web", scene.spec("web"))
    wait = ("wait", "-n", scene.namespace, "recommendation/web", "--timeout=90s")
    scene.cluster.kubectl(*wait, "--for=condition=Ready")
    scene.cluster.kubectl(*wait, "--for=condition=Acting")
    web.wait_for(3)
    scene.cluster.wait_for(
        "the current size in the status", lambda: scene.cluster.client.get(f"{scene.path}/web")["status"]["now"] == 3
    )
    table = scene.cluster.kubectl("get", "recommendations", "-n", scene.namespace)
    assert table.splitlines()[0].split() == ["NAME", "VALUE", "NOW", "STATUS", "DECIDED", "BY", "AGE"]
    assert table.splitlines()[1].split()[:5] == ["web", "3", "3", "ok", "linear/nodes"]

    begin = time.monotonic()
    scene.cluster.client.merge(f"{scene.path}/web", {"spec": {"proportional": {"linear": {"max": 2}}}})
    web.wait_for(2)
    state("recommender, object changed", f"its target was scaled after {time.monotonic() - begin:.1f} s")
    observed: dict[str, Any] = {}

    def is_observed() -> bool:
        observed.update(scene.cluster.client.get(f"{scene.path}/web")["status"])
        return bool(observed["observedGeneration"] == 2 and observed["value"] == 2)

    scene.cluster.wait_for("the status of the new generation", is_observed)

    scene.cluster.client.delete(f"{scene.path}/web")
    scene.cluster.wait_for("an end of the metrics", lambda: f"{scene.namespace}/web" not in program.items())
    scene.pool.add(2)
    last = "tidewatch_recommender_last_poll_timestamp_seconds"
    before = program.metric(last)
    scene.cluster.wait_for("a further poll", lambda: program.metric(last) != before)
    assert web.replicas == 2
    assert scene.forbidden() == set()


def test_the_file_wins_and_targets_of_others_are_refused(scene: Scene) -> None:
    scene.pool.add(2)
    scene.install()
    web, other = scene.workload("web"), scene.workload("other")
    scene.create("late", scene.spec("other"))
    kind = f'proportional: {{linear: {{nodesPerReplica: 1, max: 1}}, nodeSelector: "{scene.pool.selector}"}}'
    scene.start(entry("web", f"targets: [{web.reference}]", "outputs: [scale]", kind=kind))
    query = {"proportional": {"drivers": {"query": {"expr": "info(up)", "perReplica": 1}}}}
    elsewhere = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "kube-system", "name": "coredns"}
    scene.create("file", scene.spec("web"))
    scene.create("twice", scene.spec("other"))
    scene.create("elsewhere", scene.spec("web", targets=[elsewhere]))
    scene.create("query", {**query, "targets": scene.spec("third")["targets"]})
    expected = {
        "file": "TargetInFile",
        "twice": "TargetTaken",
        "elsewhere": "TargetOfAnotherNamespace",
        "query": "QueryNotConfined",
    }
    for name, reason in expected.items():
        scene.cluster.wait_for(f"a refusal of {name}", partial(scene.is_refused, name, reason))
    other.wait_for(2)
    assert "info()" in scene.condition("query", "Refused")[2]
    assert web.replicas == 1


def test_objects_beyond_a_quota_have_a_status_and_nothing_hangs_when_the_kind_is_deleted(
    scene: Scene,
) -> None:
    scene.pool.add(2)
    scene.install()
    for name in "abc":
        scene.workload(name)
        scene.create(name, scene.spec(name))
    unwritten = scene.cluster.client.get(f"{scene.path}/a")
    assert unwritten["status"] == {"observedGeneration": -1}
    assert "finalizers" not in unwritten["metadata"]
    program = scene.start(objects=OBJECTS.replace("enabled: true", "enabled: true, maxPerNamespace: 1"))
    scene.cluster.kubectl("wait", "-n", scene.namespace, "recommendation/a", "--for=condition=Ready", "--timeout=90s")
    for name, words in (("b", "1 older objects"), ("c", "is not read")):
        scene.cluster.wait_for(
            f"the quota in the status of {name}",
            lambda name=name, words=words: words in scene.condition(name, "Refused")[2],  # type: ignore[misc]
            why_not=lambda name=name: scene.condition(name, "Refused"),  # type: ignore[misc]
        )
    scene.write_condition("b", "Synced")

    scene.cluster.client.delete(f"{scene.path}/a")
    scene.cluster.kubectl("wait", "-n", scene.namespace, "recommendation/b", "--for=condition=Ready", "--timeout=90s")
    scene.cluster.wait_for(
        "an object that is read now", lambda: "1 older objects" in scene.condition("c", "Refused")[2]
    )
    assert scene.condition("b", "Synced") == ("True", "OutOfHere", "what another manager says")
    assert scene.forbidden() == set()

    scene.cluster.remove_definition("recommendations.tidewatch.io")
    scene.cluster.wait_for("an end of the metrics", lambda: program.items() == {})


REFUSED: Final[dict[str, tuple[Document, str]]] = {
    "a misspelt key": ({"proportionl": {}}, "unknown field"),
    "a size of the cluster": ({"clusterSize": {"expander": "random"}}, "only in the administrator's file"),
    "two kinds": ({"predictive": {"load": "up", "loadPerReplica": 1, "horizon": "1m"}}, "exactly one of"),
    "an output of the file": ({"outputs": ["capacityBuffer"]}, "Unsupported value"),
    "a step that is none": ({"maxStep": "ten"}, "should match"),
    "a pause that is a list": ({"paused": [[True]]}, "must have at most 0 items"),
    "a pause that is a mapping": ({"paused": {"a": {}}}, "spec.paused"),
    "nothing to scale": ({"targets": None}, "no targets"),
}


def test_the_api_server_refuses_invalid_objects(scene: Scene) -> None:
    scene.install()
    answers = {}
    for place, (change, _) in enumerate(REFUSED.values()):
        spec = {key: each for key, each in scene.spec("web", **change).items() if each is not None}
        with pytest.raises(ApiError) as caught:
            scene.create(f"wrong-{place}", spec)
        answers[place] = caught.value.message
    assert [message in answers[place] for place, (_, message) in enumerate(REFUSED.values())] == [True] * len(REFUSED)
    for place, pause in enumerate((True, "up", "2026-01-31T08:00:00Z")):
        scene.create(f"paused-{place}", scene.spec("web", paused=pause))
