"""Filters that check the volumes of a pod."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import NodeSelectorTerm, PodScheduling
from adapter.foundation.cluster.values.state import ClusterPod, Observed, Unknown
from adapter.foundation.cluster.values.storage import CsiNodeFacts, Storage, StorageClassFacts, Volume, VolumeClaim
from adapter.foundation.objects.requirements import Operator, Requirement
from recommender.kinds.cluster_size.predicates.filters import PodFilter
from recommender.kinds.cluster_size.predicates.pod_shapes import Refusal
from recommender.kinds.cluster_size.predicates.snapshot import Snapshot
from tests.support.scheduling import node, pod

if TYPE_CHECKING:
    from collections.abc import Iterable

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
NODES = (node("a1", labels={ZONE: "a"}), node("b1", labels={ZONE: "b"}))
NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
OTHER_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
OTHER_ZONE = "node(s) had no available volume zone"
TOO_MANY = "node(s) exceed max volume count"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

LATE = StorageClassFacts("late", "csi.example.com", binds_at_first_consumer=True)
LOCAL = StorageClassFacts("local", "kubernetes.io/no-provisioner", binds_at_first_consumer=True)
AT_ONCE = StorageClassFacts("at-once", "csi.example.com", binds_at_first_consumer=False)
ONLY_A = replace(LATE, name="only-a", allowed_topologies=(NodeSelectorTerm((Requirement(ZONE, Operator.IN, ("a",)),)),))
NOWHERE = replace(LATE, name="nowhere", allowed_topologies=(NodeSelectorTerm(),))
CLASSES = (LATE, LOCAL, AT_ONCE, ONLY_A, NOWHERE)


def claim(name: str = "data", volume: str = "", storage_class: str | None = None) -> VolumeClaim:
    return VolumeClaim("shop", name, volume, storage_class, is_bound=bool(volume), request_bytes=10)


def volume(name: str, zone: str = "", storage_class: str = "", size: int = 10, phase: str = "Available") -> Volume:
    terms = (NodeSelectorTerm((Requirement(ZONE, Operator.IN, (zone,)),)),) if zone else None
    return Volume(name, {}, terms, storage_class, size, driver="csi.example.com", handle=f"disk-{name}", phase=phase)


def storage(
    claims: Iterable[VolumeClaim] = (), volumes: Iterable[Volume] = (), limits: dict[str, int] | None = None
) -> Storage:
    csi = {name: CsiNodeFacts(name, {"csi.example.com": limit}) for name, limit in (limits or {}).items()}
    return Storage(
        claims=Observed({(one.namespace, one.name): one for one in claims}, 0),
        volumes=Observed({one.name: one for one in volumes}, 0),
        classes=Observed({one.name: one for one in CLASSES}, 0),
        csi_nodes=Observed(csi, 0),
    )


def user(name: str = "new", *claims: str, place: str = "", disks: tuple[str, ...] = ()) -> ClusterPod:
    scheduling = PodScheduling(claims=claims, inline_volumes=disks)
    return pod(name, node=place, scheduling=scheduling)


def judged(pending: ClusterPod, known: Storage | None, *placed: ClusterPod) -> tuple[Refusal | None, dict[str, str]]:
    """Return why the pod fits nowhere, and all reasons of each node that refuses it."""
    snapshot = Snapshot(NODES, placed, known)
    judge = PodFilter(snapshot, snapshot.shape(pending))
    found = {name: judge.refusals(info) for name, info in snapshot.nodes.items()}
    assert [judge.fits(info) for info in snapshot.nodes.values()] == [not refusals for refusals in found.values()]
    return judge.problem, {name: "; ".join(one.reason for one in why) for name, why in found.items() if why}


@pytest.mark.parametrize(
    ("known", "plugin", "reason"),
    [
        (storage(), "VolumeRestrictions", 'persistentvolumeclaim "data" not found'),
        (
            storage([replace(claim(volume="v"), is_lost=True)]),
            "VolumeBinding",
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        (
            storage([replace(claim(volume="v"), is_terminating=True)], [volume("v")]),
            "VolumeBinding",
            'persistentvolumeclaim "data" is being deleted',
        ),
        (storage([claim()]), "VolumeBinding", IMMEDIATE),
        (storage([claim(storage_class="at-once")]), "VolumeBinding", IMMEDIATE),
        (storage([claim(storage_class="unknown")]), "VolumeBinding", IMMEDIATE),
        # A volume is named, but the binding is not complete.
        (storage([replace(claim(volume="v", storage_class="late"), is_bound=False)]), "VolumeBinding", IMMEDIATE),
        (storage([claim(volume="v")]), "VolumeZone", 'persistentvolume "v" not found'),
    ],
)
def test_an_unusable_claim_refuses_every_node(known: Storage, plugin: str, reason: str) -> None:
    assert judged(user("new", "data"), known) == (Refusal(plugin, reason), dict.fromkeys(("a1", "b1"), reason))


@pytest.mark.parametrize(
    ("known", "detail"),
    [
        (None, "storage is not watched"),
        (replace(storage(), claims=Unknown("no rights")), "PersistentVolumeClaims are unknown: no rights"),
        (replace(storage(), volumes=Unknown("no rights")), "PersistentVolumes are unknown: no rights"),
        (replace(storage(), classes=Unknown("no rights")), "StorageClasses are unknown: no rights"),
        (replace(storage(), csi_nodes=Unknown("no rights")), "CSINodes are unknown: no rights"),
    ],
)
def test_claims_are_not_judged_without_known_storage(known: Storage | None, detail: str) -> None:
    reason = "the pod's PersistentVolumeClaims cannot be judged"
    found = judged(user("new", "data"), known)
    assert found == (Refusal("VolumeBinding", reason, detail), dict.fromkeys(("a1", "b1"), reason))
    assert judged(user("new"), known) == (None, {})


def test_device_claims_are_not_judged() -> None:
    pending = pod("new", scheduling=PodScheduling(resource_claims=("gpu",)))
    found, _ = judged(pending, None)
    assert found == Refusal("DynamicResources", "what the pod's ResourceClaims need cannot be judged")


@pytest.mark.parametrize(
    ("wanted", "volumes", "refused"),
    [
        (claim(volume="v"), [volume("v", "a")], {"b1": OTHER_AFFINITY}),
        (claim(volume="v"), [volume("v")], {}),
        (claim(volume="v"), [replace(volume("v"), labels={ZONE: "a"})], {"b1": OTHER_ZONE}),
        (claim(volume="v"), [replace(volume("v"), labels={BETA_ZONE: "b__c"})], {"a1": OTHER_ZONE}),
        (claim(volume="v"), [replace(volume("v"), labels={ZONE: "a__"})], {}),
        # A term of names alone: the scheduler shows it no name.
        (claim(volume="v"), [replace(volume("v"), node_terms=(NodeSelectorTerm(name_in=("x",)),))], {}),
        (claim(volume="v"), [replace(volume("v"), node_terms=())], dict.fromkeys(("a1", "b1"), OTHER_AFFINITY)),
    ],
)
def test_bound_volumes_are_usable_where_their_affinity_and_zone_allow(
    wanted: VolumeClaim, volumes: list[Volume], refused: dict[str, str]
) -> None:
    assert judged(user("new", "data"), storage([wanted], volumes)) == (None, refused)


def test_nodes_without_a_zone_take_volumes_of_every_zone() -> None:
    known = storage([claim(volume="v")], [replace(volume("v"), labels={ZONE: "a"})])
    snapshot = Snapshot([node("n")], [], known)
    assert PodFilter(snapshot, snapshot.shape(user("new", "data"))).fits(snapshot.nodes["n"])


EVERYWHERE = dict.fromkeys(("a1", "b1"), NOTHING_TO_BIND)
LOCAL_CLAIM = claim(storage_class="local")


@pytest.mark.parametrize(
    ("wanted", "volumes", "refused"),
    [
        (claim(storage_class="late"), [], {}),
        (claim(storage_class="only-a"), [], {"b1": NOTHING_TO_BIND}),
        (claim(storage_class="nowhere"), [], EVERYWHERE),
        (LOCAL_CLAIM, [], EVERYWHERE),
        (LOCAL_CLAIM, [volume("v", "a", "local")], {"b1": NOTHING_TO_BIND}),
        (LOCAL_CLAIM, [volume("v", "a", "late")], EVERYWHERE),
        (LOCAL_CLAIM, [volume("v", "a", "local", size=9)], EVERYWHERE),
        (LOCAL_CLAIM, [volume("v", "a", "local", phase="Released")], EVERYWHERE),
        (replace(LOCAL_CLAIM, access_modes=("ReadWriteMany",)), [volume("v", "a", "local")], EVERYWHERE),
        (LOCAL_CLAIM, [replace(volume("v", "a", "local"), claim=("shop", "other"))], EVERYWHERE),
        # A volume that names the claim is its only choice, and need not be available.
        (
            LOCAL_CLAIM,
            [replace(volume("v", "a", "local", phase="Released"), claim=("shop", "data")), volume("w", "b", "local")],
            {"b1": NOTHING_TO_BIND},
        ),
        (replace(claim(storage_class="late"), selected_node="a1"), [], {"b1": NOTHING_TO_BIND}),
    ],
)
def test_claims_that_bind_at_first_consumer_need_a_volume_or_a_provisioner(
    wanted: VolumeClaim, volumes: list[Volume], refused: dict[str, str]
) -> None:
    assert judged(user("new", "data"), storage([wanted], volumes)) == (None, refused)


def test_two_claims_of_a_pod_need_two_volumes() -> None:
    claims = [LOCAL_CLAIM, replace(LOCAL_CLAIM, name="logs", request_bytes=5)]
    one, two = volume("v", "a", "local"), volume("w", "a", "local", size=5)
    pending = user("new", "data", "logs")
    assert judged(pending, storage(claims, [one])) == (None, EVERYWHERE)
    assert judged(pending, storage(claims, [one, two])) == (None, {"b1": NOTHING_TO_BIND})


def test_both_binding_reasons_are_reported() -> None:
    known = storage([claim(volume="v"), replace(LOCAL_CLAIM, name="logs")], [volume("v", "a")])
    found = judged(user("new", "data", "logs"), known)
    assert found == (None, {"a1": NOTHING_TO_BIND, "b1": f"{OTHER_AFFINITY}; {NOTHING_TO_BIND}"})


@pytest.mark.parametrize(
    ("used", "wanted", "refused"),
    [
        ("gcePersistentDisk/d", "gcePersistentDisk/d", True),
        ("gcePersistentDisk/d", "gcePersistentDisk/e", False),
        ("gcePersistentDisk/d:ro", "gcePersistentDisk/d:ro", False),
        ("gcePersistentDisk/d:ro", "gcePersistentDisk/d", True),
        ("gcePersistentDisk/d", "gcePersistentDisk/d:ro", True),
        ("awsElasticBlockStore/d:ro", "awsElasticBlockStore/d:ro", True),
    ],
)
def test_disks_are_shared_on_a_node_only_if_read_only(used: str, wanted: str, *, refused: bool) -> None:
    found = judged(user("new", disks=(wanted,)), None, user("old", place="a1", disks=(used,)))
    assert found == (None, {"a1": NO_DISK} if refused else {})


def test_a_read_write_once_pod_claim_refuses_every_node_while_in_use() -> None:
    alone = replace(claim(volume="v"), access_modes=("ReadWriteOncePod",))
    known = storage([alone], [volume("v")])
    assert judged(user("new", "data"), known) == (None, {})
    assert judged(user("new", "data"), known, user("old", "data", place="a1")) == (
        None,
        dict.fromkeys(("a1", "b1"), IN_USE),
    )


@pytest.mark.parametrize(
    ("held", "wanted", "limit", "refused"),
    [
        ("one", "two", 1, True),
        ("one", "two", 2, False),
        # Two claims of one disk, and a claim that another pod of the node has already.
        ("one", "same", 1, False),
        ("one", "one", 1, False),
        # A claim without volume counts for the driver of its class.
        ("one", "late", 1, True),
        ("late", "one", 1, True),
        ("late", "other", 1, False),
    ],
)
def test_the_volume_limit_of_a_driver_on_a_node_is_respected(
    held: str, wanted: str, limit: int, *, refused: bool
) -> None:
    volumes = [volume("v1"), volume("v2"), replace(volume("v3"), handle="disk-v1"), replace(volume("v4"), driver="x")]
    claims = [
        claim("one", "v1"),
        claim("two", "v2"),
        claim("same", "v3"),
        claim("other", "v4"),
        claim("late", storage_class="late"),
    ]
    found = judged(user("new", wanted), storage(claims, volumes, {"a1": limit}), user("old", held, place="a1"))
    assert found == (None, {"a1": TOO_MANY} if refused else {})


def test_simulated_nodes_have_the_volume_limits_of_their_instance_type() -> None:
    large = {"node.kubernetes.io/instance-type": "large"}
    known = storage([claim("one", "v1"), claim("two", "v2")], [volume("v1"), volume("v2")], {"a": 2, "b": 1})
    snapshot = Snapshot([node("a", labels=large), node("b", labels=large)], [], known)
    added = [snapshot.add_node(node("new", labels=large)), snapshot.add_node(node("other"))]
    judge = PodFilter(snapshot, snapshot.shape(user("p", "one", "two")))
    assert [judge.fits(info) for info in added] == [False, True]
