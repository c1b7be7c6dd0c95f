"""`tidewatch-recommender run` with exactly the rights that its configuration needs: leaders, owners and standbys."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.machine.files import replace_file
from tests.e2e.support.figures import state
from tests.e2e.support.recommenders import LEASE, Pool, Workload, autoscaler, rights, rule, service_account
from tests.recommender.configuration.files import entry, whole
from tests.support.recommenders import Recommender, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.e2e.controlplane.cluster import Cluster

__all__ = ["state"]

# A killed leader is waited for, and facts that must grow old.
pytestmark = pytest.mark.timeout(300)

TAKEOVER_SECONDS: Final = 20.0
AT_ONCE_SECONDS: Final = 12.0
"""A released lease is seen within the retry period of 2.0 to 4.4 s; the rest is for a busy machine."""
STALE_SECONDS: Final = 60.0
"""The default and minimum of `staleAfter`."""
APPLY: Final = "application/apply-patch+yaml"
KILLS: Final = int(os.environ.get("RECOMMENDER_KILLS", "10"))
"""How often the program is killed, each time in the next state of `STATES`."""


@dataclass(slots=True)
class Scene:
    """Deployments, nodes, and recommenders that share one configuration."""

    cluster: Cluster
    namespace: str
    folder: Path
    pool: Pool
    lease: str = LEASE
    stack: ExitStack = field(default_factory=ExitStack)

    def workload(self, name: str, replicas: int = 1) -> Workload:
        found = Workload(self.cluster, self.namespace, name)
        found.create(replicas)
        return found

    def configure(self, *entries: str, elects: bool = True) -> None:
        place = f"namespace: {self.namespace}, name: {self.lease}"
        election = f"leaderElection: {{enabled: {str(elects).lower()}, {place}}}\n"
        top = f"pollInterval: 1s\nstate: {self.folder}/state\n{election}"
        replace_file(self.folder / "recommender.yaml", whole(*entries, top=top))

    def entry(self, name: str, *targets: Workload, more: Sequence[str] = ()) -> str:
        """Return a recommendation of one replica for each node of the pool."""
        references = ", ".join(target.reference for target in targets)
        kind = f'proportional: {{linear: {{nodesPerReplica: 1}}, nodeSelector: "{self.pool.selector}"}}'
        return entry(name, f"targets: [{references}]", "outputs: [metric, scale]", *more, kind=kind)

    def start(self, account: str, *names: str, targets: Sequence[Workload], suffix: str = "") -> Recommender:
        """Start a recommender with the rights for the recommendations of these names."""
        if not (self.folder / f"{account}.kubeconfig").exists():
            here = rights(names, [target.name for target in targets], self.lease)
            nodes = [rule([""], ["nodes"], "list watch")]
            given = service_account(self.cluster, self.namespace, account, self.folder, here=here, everywhere=nodes)
            self.stack.enter_context(given)
        found = started(
            self.folder / f"{account}{suffix}.log",
            "run",
            f"--config={self.folder}/recommender.yaml",
            f"--kubeconfig={self.folder}/{account}.kubeconfig",
        )
        self.stack.enter_context(found.process)
        return found

    def refused_requests(self) -> set[str]:
        """Return the requests of the namespace's service accounts that were forbidden."""
        mark = f"system:serviceaccount:{self.namespace}:"
        found = [event for event in self.cluster.audit_events() if event.user.startswith(mark) and event.code == 403]
        return {f"{event.verb} {event.uri}" for event in found}

    def memory(self) -> frozenset[tuple[str, str]]:
        """Return names and versions of the ConfigMaps, including the memory's; each write gives a new version."""
        found = self.cluster.client.items(f"/api/v1/namespaces/{self.namespace}/configmaps")
        return frozenset((one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in found)

    def holder(self) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{LEASE}"
        found = self.cluster.client.find(path)
        return (found or {}).get("spec", {}).get("holderIdentity") or ""

    def outcome(self, program: Recommender, name: str) -> dict[str, Any]:
        """Return the recommendation's outcome for its first target; empty before the first decision."""
        items = program.items()
        return items[name]["targets"][0] if name in items else {}

    def events(self, target: Workload) -> list[tuple[str, str]]:
        """Return reason and message of the events of a target."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        selector = f"involvedObject.name={target.name},involvedObject.kind=Deployment"
        found = self.cluster.client.items(path, fieldSelector=selector)
        return [(one["reason"], one["message"]) for one in found if one["source"].get("component") == LEASE]


@pytest.fixture
def scene(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Scene]:
    found = Scene(cluster, namespace, tmp_path, Pool(cluster))
    with found.stack:
        yield found
    found.pool.remove()


def test_another_replica_takes_over_and_no_size_is_written_twice(
    scene: Scene, state: Callable[[str, str], None]
) -> None:
    scene.pool.add(4)
    dns = scene.workload("dns")
    scene.configure(scene.entry("dns", dns))
    first = scene.start("first", "dns", targets=[dns])
    dns.wait_for(4)
    second = scene.start("second", "dns", targets=[dns])
    leader = scene.holder()
    scene.cluster.wait_for("the name of the leader", lambda: leader in second.get("/api/v1/recommendations")[1])
    assert second.get("/api/v1/recommendations")[0] == 503

    first.process.kill()
    begin = time.monotonic()
    scene.pool.add(1)
    scene.cluster.wait_for("the next leader", lambda: second.metric("tidewatch_leader") == "1.0", TAKEOVER_SECONDS)
    led = time.monotonic() - begin
    dns.wait_for(5)
    killed = time.monotonic() - begin

    third = scene.start("first", "dns", targets=[dns], suffix="-again")
    scene.cluster.wait_for("a standby", lambda: third.metric("tidewatch_leader") == "0.0")
    second.process.send(signal.SIGTERM)
    begin = time.monotonic()
    scene.cluster.wait_for("the next leader", lambda: third.metric("tidewatch_leader") == "1.0", AT_ONCE_SECONDS)
    released = time.monotonic() - begin
    scene.pool.add(1)
    dns.wait_for(6)

    assert second.process.wait(10.0) == 0
    assert len(dns.writes_of_all_changes()) == dns.changes() == 3
    assert dns.writers() == ["first", "second", "first"]
    assert scene.refused_requests() == set()
    state("recommender, leader killed", f"the next one led after {led:.1f} s and scaled after {killed:.1f} s")
    state("recommender, leader ended by SIGTERM", f"the next one led after {released:.1f} s")


def test_targets_of_others_are_refused_and_their_owner_is_named(scene: Scene) -> None:
    scene.pool.add(3)
    names = ["free", "scaled", "applied", "shared", "held"]
    free, scaled, applied, shared, held = (scene.workload(name) for name in names)
    client = scene.cluster.client
    client.create(f"/apis/autoscaling/v2/namespaces/{scene.namespace}/horizontalpodautoscalers", autoscaler("scaled"))
    applied_spec = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "applied"}}
    query = {"fieldManager": "argocd-controller", "force": "true"}
    body = {**applied_spec, "spec": {"replicas": 2}}
    assert client.ask("PATCH", applied.path, query=query, body=body, content_type=APPLY).status == 200
    client.merge(held.path, {"metadata": {"annotations": {"tidewatch.io/paused": "true"}}})

    recommendations = [*names, "rival"]
    entries = [scene.entry(name, Workload(scene.cluster, scene.namespace, name)) for name in names]
    scene.configure(*entries, scene.entry("rival", shared))
    program = scene.start("alone", *recommendations, targets=[free, scaled, applied, shared, held])
    free.wait_for(3)
    owners = {
        "scaled": f"HorizontalPodAutoscaler {scene.namespace}/scaled",
        "applied": "field manager argocd-controller",
        "shared": "recommendation rival",
        "rival": "recommendation shared",
    }
    for name, owner in owners.items():
        outcome = scene.cluster.wait_for(f"a decision about {name}", partial(scene.outcome, program, name))
        assert (outcome["action"], outcome["owner"]) == ("refused", owner)
    assert program.items()["held"]["status"] == "held"
    assert "tidewatch.io/paused" in program.items()["held"]["message"]
    for target in (scaled, applied, shared, held):
        assert target.writes() == []
    scene.cluster.wait_for("an event", lambda: "Scaled" in dict(scene.events(free)))
    scene.cluster.wait_for("a warning", lambda: "ScaleRefused" in dict(scene.events(applied)))
    assert "argocd-controller" in dict(scene.events(applied))["ScaleRefused"]
    assert scene.refused_requests() == set()

    client.merge(held.path, {"metadata": {"annotations": {"tidewatch.io/paused": None}}})
    held.wait_for(3)


def test_two_recommenders_that_do_not_know_each_other_do_not_change_a_target_at_each_poll(scene: Scene) -> None:
    scene.pool.add(3)
    dns = scene.workload("dns")
    scene.configure(scene.entry("dns", dns))
    first = scene.start("first", "dns", targets=[dns])
    dns.wait_for(3)
    other = replace(scene, folder=scene.folder / "other", lease="other-release")
    other.folder.mkdir()
    other.configure(scene.entry("rival", dns).replace("nodesPerReplica: 1", "nodesPerReplica: 1, min: 6"))
    other.start("second", "rival", targets=[dns])
    dns.wait_for(6)

    def refused_at(replicas: int) -> str:
        outcome = scene.outcome(first, "dns")
        is_refused = (outcome.get("action"), outcome.get("owner")) == ("refused", "another recommender")
        return str(outcome["message"]) if is_refused and first.items()["dns"]["replicas"] == replicas else ""

    refusal = scene.cluster.wait_for("a refusal", lambda: refused_at(3))
    assert "has replaced the 3 replicas that this one wrote" in refusal
    scene.pool.add(1)
    scene.cluster.wait_for("the same for another value", lambda: refused_at(4))
    assert len(dns.writes_of_all_changes()) == dns.changes() == 2
    assert dns.writers() == ["first", "second"]


@pytest.mark.parametrize("elects", [True, False], ids=["with a Lease", "alone"])
def test_nothing_is_scaled_while_the_api_server_does_not_answer_and_scaling_resumes_afterwards(
    scene: Scene,
    elects: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """With a Lease the value ends with the leadership, and without one when it becomes stale."""
    scene.pool.add(3)
    dns = scene.workload("dns")
    scene.configure(scene.entry("dns", dns), elects=elects)
    program = scene.start("alone", "dns", targets=[dns])
    dns.wait_for(3)
    series = (
        'tidewatch_recommended_replicas{recommendation="dns",target_kind="Deployment",target_name="dns",'
        f'target_namespace="{scene.namespace}"}}'
    )
    scene.cluster.wait_for("the series", lambda: program.metric(series) == "3.0")
    api_server = scene.cluster.plane.process("kube-apiserver")
    api_server.pause()
    try:
        scene.cluster.wait_for("the end of the series", lambda: program.metric(series) is None, STALE_SECONDS + 30.0)
        assert program.get("/healthz", plain=True)[0] == 200
        assert program.get("/readyz", plain=True)[0] == 200
    finally:
        api_server.resume()
    scene.pool.add(1)
    dns.wait_for(4, 90.0)
    scene.cluster.wait_for("the series", lambda: program.metric(series) == "4.0")
    assert len(dns.writes_of_all_changes()) == dns.changes() == 2


@pytest.mark.timeout(120 + 12 * KILLS)
def test_a_program_that_is_killed_in_any_state_loses_no_limit_and_writes_nothing_twice(scene: Scene) -> None:
    """The program may change its value five times in an hour: without its memory it would do so after each kill."""
    allowed = 5
    dns = scene.workload("dns")
    # One node for the replica that is there, so that each further one is a change.
    scene.pool.add(1)
    scene.configure(scene.entry("dns", dns, more=[f"maxChangesPerHour: {allowed}"]), elects=False)
    for kill in range(KILLS):
        program = scene.start("alone", "dns", targets=[dns], suffix=f"-{kill}")
        reached = STATES[kill % len(STATES)]
        reached(scene, dns, program)
        program.process.kill()
    last = scene.start("alone", "dns", targets=[dns], suffix="-last")
    # The first value is none that has changed. What is not limited yet changes with the next node.
    while not is_limited(last):
        assert dns.changes() <= allowed + 1
        has_changed(scene, dns, last)
    # The call of the last change may still be under way; none follows the end of the program.
    last.process.stop()
    assert 0 < dns.changes() <= allowed + 1
    assert len(dns.writes_of_all_changes()) == dns.changes()


def is_limited(program: Recommender) -> bool:
    return "maxChangesPerHour" in str(program.items())


def has_begun(_scene: Scene, _target: Workload, _program: Recommender) -> None:
    """The process exists."""


def has_ports(_scene: Scene, _target: Workload, program: Recommender) -> None:
    program.address(plain=True)


def has_decided(scene: Scene, _target: Workload, program: Recommender) -> None:
    scene.cluster.wait_for("a decision", lambda: bool(scene.outcome(program, "dns")))


def has_cause_to_change(scene: Scene, target: Workload, program: Recommender) -> None:
    has_decided(scene, target, program)
    scene.pool.add(1)


def has_remembered(scene: Scene, target: Workload, program: Recommender) -> None:
    """The memory of a change has been written, and its scale call may be under way; or the limit is reached."""
    has_decided(scene, target, program)
    before = scene.memory()
    scene.pool.add(1)
    scene.cluster.wait_for(
        "a memory, or the limit", lambda: scene.memory() != before or is_limited(program), why_not=program.items
    )


def has_changed(scene: Scene, target: Workload, program: Recommender) -> None:
    """One more node has changed the size, or the limit is reached."""
    before = target.changes()
    scene.pool.add(1)
    scene.cluster.wait_for(
        "a change, or the limit", lambda: target.changes() > before or is_limited(program), why_not=program.items
    )


STATES: Final = (has_begun, has_changed, has_remembered, has_cause_to_change, has_ports, has_decided)
"""States of the program; the test waits for one before each kill."""
