"""Random clusters with one pending pod, as objects of the API, for the judge and this project.

Names and labels are few, so that constraints often meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.e2e.judge.judging import Objects

Object = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
DRIVER: Final = "disk.example.com"
ZONES: Final = ("z1", "z2", "z3")
NAMESPACES: Final = {"default": {"team": "a"}, "other": {"team": "b"}}
APPS: Final = ("web", "db")
NODES: Final = tuple(f"n{number}" for number in range(1, 7))
EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def rarely(strategy: st.SearchStrategy[Any], otherwise: object = None, one_in: int = 3) -> st.SearchStrategy[Any]:
    """Return a strategy that uses the given one once in a while, and `otherwise` in all other cases."""
    return st.integers(1, one_in).flatmap(lambda number: strategy if number == one_in else st.just(otherwise))


_labels = st.fixed_dictionaries({"app": st.sampled_from(APPS)}, optional={"version": st.sampled_from(("1", "2"))})
_requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(("0", "100m", "100m", "500m", "1", "1500m")),
        "memory": st.sampled_from(("0", "64Mi", "64Mi", "256Mi", "1Gi")),
        "ephemeral-storage": st.sampled_from(("1Gi", "1Gi", "1Gi", "20Gi")),
        "nvidia.com/gpu": st.sampled_from(("0", "0", "0", "0", "0", "1")),
    },
)
_taint = st.fixed_dictionaries(
    {"key": st.sampled_from(("k1", "k2")), "effect": st.sampled_from(EFFECTS)},
    optional={"value": st.sampled_from(("v1", "v2"))},
)
_toleration = st.one_of(
    st.fixed_dictionaries(
        {"key": st.sampled_from(("k1", "k2", "node.kubernetes.io/unschedulable")), "operator": st.just("Exists")},
        optional={"effect": st.sampled_from(EFFECTS)},
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(("k1", "k2")), "value": st.sampled_from(("v1", "v2"))},
        optional={"effect": st.sampled_from(EFFECTS), "operator": st.just("Equal")},
    ),
    st.just({"operator": "Exists"}),
)
_node_expression = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(("pool", ZONE, "size")),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from(("a", "b", "z1", "z2", "4")), min_size=1, max_size=2, unique=True),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(("pool", "size")), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
    ),
    st.fixed_dictionaries(
        {"key": st.just("size"), "operator": st.sampled_from(("Gt", "Lt")), "values": st.sampled_from((["2"], ["4"]))}
    ),
)
_name_field = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.sampled_from(NODES[:3]).map(lambda name: [name]),
    }
)
_node_term = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(_node_expression, min_size=1, max_size=2),
        "matchFields": st.lists(_name_field, min_size=1, max_size=1),
    },
)
_label_selector: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.just({}),
    st.fixed_dictionaries({"matchLabels": st.fixed_dictionaries({"app": st.sampled_from(APPS)})}),
    st.fixed_dictionaries(
        {
            "matchExpressions": st.lists(
                st.one_of(
                    st.fixed_dictionaries(
                        {
                            "key": st.just("app"),
                            "operator": st.sampled_from(("In", "NotIn")),
                            "values": st.lists(st.sampled_from(APPS), min_size=1, max_size=2, unique=True),
                        }
                    ),
                    st.fixed_dictionaries(
                        {"key": st.just("version"), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
                    ),
                ),
                min_size=1,
                max_size=2,
            )
        }
    ),
)
_topology_key = st.sampled_from((ZONE, HOSTNAME, "pool"))
_pod_term = st.fixed_dictionaries(
    {"topologyKey": _topology_key, "labelSelector": _label_selector},
    optional={
        "namespaces": st.lists(st.sampled_from(tuple(NAMESPACES)), min_size=1, max_size=2, unique=True),
        "namespaceSelector": st.sampled_from(({}, {"matchLabels": {"team": "b"}})),
    },
)
_spread = st.fixed_dictionaries(
    {
        "topologyKey": _topology_key,
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _label_selector,
    },
    optional={
        "nodeAffinityPolicy": st.sampled_from(("Honor", "Ignore")),
        "nodeTaintsPolicy": st.sampled_from(("Honor", "Ignore")),
        "minDomains": st.integers(1, 4),
    },
)
_port = st.fixed_dictionaries(
    {"containerPort": st.just(80), "hostPort": st.sampled_from((80, 81))},
    optional={"protocol": st.sampled_from(("TCP", "UDP")), "hostIP": st.sampled_from(("127.0.0.1", "0.0.0.0"))},
)


@st.composite
def _node(draw: st.DrawFn, name: str) -> Object:
    optional = {
        ZONE: st.sampled_from(ZONES),
        "pool": st.sampled_from(("a", "b")),
        "size": st.sampled_from(("1", "3", "5")),
    }
    labels = {HOSTNAME: name, **draw(st.fixed_dictionaries({}, optional=optional))}
    amounts = {
        "cpu": draw(st.sampled_from(("500m", "2", "4", "8"))),
        "memory": draw(st.sampled_from(("512Mi", "4Gi", "8Gi"))),
        "pods": draw(st.sampled_from(("1", "3", "110", "110"))),
        "ephemeral-storage": "15Gi",
        **draw(rarely(st.just({"nvidia.com/gpu": "2"}), {})),
    }
    spec: Object = {"taints": draw(rarely(st.lists(_taint, min_size=1, max_size=2), [], one_in=4))}
    if draw(rarely(st.just(value=True), otherwise=False, one_in=12)):
        spec["unschedulable"] = True
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


@st.composite
def _pod(draw: st.DrawFn, name: str, claims: tuple[str, ...]) -> Object:
    requests = draw(st.lists(_requests, min_size=1, max_size=2))
    containers: list[Object] = [
        {"name": f"c{number}", "image": "image", "resources": {"requests": one}} for number, one in enumerate(requests)
    ]
    containers[0]["ports"] = draw(rarely(st.lists(_port, min_size=1, max_size=1), [], one_in=5))
    affinity: Object = {}
    terms = st.lists(_pod_term, min_size=1, max_size=2)
    for kind in ("podAffinity", "podAntiAffinity"):
        if found := draw(rarely(terms, one_in=4)):
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": found}
    if found := draw(rarely(st.lists(_node_term, min_size=1, max_size=2), one_in=4)):
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}
    selector = st.fixed_dictionaries({}, optional={"pool": st.sampled_from(("a", "b")), ZONE: st.sampled_from(ZONES)})
    spec: Object = {
        "containers": containers,
        "affinity": affinity,
        "nodeSelector": draw(rarely(selector, {}, one_in=5)),
        "tolerations": draw(rarely(st.lists(_toleration, min_size=1, max_size=2), [], one_in=2)),
        "topologySpreadConstraints": draw(rarely(st.lists(_spread, min_size=1, max_size=2), [], one_in=3)),
        "volumes": [
            {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}}
            for number, claim in enumerate(
                draw(rarely(st.lists(st.sampled_from(claims), min_size=1, max_size=2, unique=True), [], one_in=4))
            )
        ]
        if claims
        else [],
    }
    if draw(rarely(st.just({"cpu": "200m"}), one_in=6)):
        spec["overhead"] = {"cpu": "200m"}
    if found := draw(rarely(_requests, one_in=6)):
        restart = draw(st.sampled_from(({}, {"restartPolicy": "Always"})))
        spec["initContainers"] = [{"name": "init", "image": "image", "resources": {"requests": found}, **restart}]
    namespace = draw(st.sampled_from(tuple(NAMESPACES)))
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": draw(_labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


@st.composite
def _bound(draw: st.DrawFn, name: str, nodes: tuple[str, ...], claims: tuple[str, ...]) -> Object:
    pod: Object = draw(_pod(name, claims))
    pod["spec"]["nodeName"] = draw(st.sampled_from(nodes))
    pod["status"]["phase"] = "Running"
    if draw(rarely(st.just(value=True), otherwise=False, one_in=8)):
        pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    return pod


_CLASSES: Final = (
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late-z1"},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}],
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "early"},
        "provisioner": DRIVER,
        "volumeBindingMode": "Immediate",
    },
)


@st.composite
def _claim(draw: st.DrawFn, name: str, namespace: str) -> tuple[Object, Object | None]:
    """Return a claim, and the volume that it is bound to, if any."""
    size = {"requests": {"storage": "1Gi"}}
    modes = [draw(st.sampled_from(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")))]
    storage_class = draw(st.sampled_from([one["metadata"]["name"] for one in _CLASSES]))  # type: ignore[index]
    claim: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        "spec": {"accessModes": modes, "resources": size, "storageClassName": storage_class},
        "status": {"phase": "Pending"},
    }
    if not draw(st.booleans()):
        return claim, None
    volume_name = f"pv-{namespace}-{name}"
    claim["spec"]["volumeName"] = volume_name
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["status"] = {"phase": "Bound"}
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name, "labels": draw(rarely(st.just({ZONE: "z2"}), {}))},
        "spec": {
            "accessModes": modes,
            "capacity": {"storage": "1Gi"},
            "storageClassName": storage_class,
            "csi": {"driver": DRIVER, "volumeHandle": volume_name},
            "claimRef": {"namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]},
        },
        "status": {"phase": "Bound"},
    }
    zone = draw(rarely(st.sampled_from(ZONES), one_in=2))
    if zone:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return claim, volume


@st.composite
def clusters(draw: st.DrawFn) -> Objects:
    """Return a cluster in the form that the judge reads."""
    nodes = NODES[: draw(st.integers(1, len(NODES)))]
    names = ("data", "logs") if draw(st.booleans()) else ()
    made = [draw(_claim(name, namespace)) for namespace in NAMESPACES for name in names]
    claims = (*names, "missing") if names and draw(rarely(st.just(value=True), otherwise=False)) else names
    bound_names = [f"p{number}" for number in range(draw(st.integers(0, 8)))]
    csi_nodes = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node},
            "spec": {
                "drivers": [{"name": DRIVER, "nodeID": node, "topologyKeys": [ZONE], "allocatable": {"count": limit}}]
            },
        }
        for node in nodes
        if names and (limit := draw(st.integers(0, 3))) < 3
    ]
    return {
        "nodes": [draw(_node(name)) for name in nodes],
        # A bound pod whose claim is missing cannot exist for long, and the scheduler's error is none of a node.
        "pods": [draw(_bound(name, nodes, names)) for name in bound_names],
        "pod": draw(_pod("pending", claims)),
        "namespaces": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            for name, labels in NAMESPACES.items()
        ],
        "claims": [claim for claim, _ in made],
        "volumes": [volume for _, volume in made if volume is not None],
        "storageClasses": list(_CLASSES) if names else [],
        "csiNodes": csi_nodes,
    }


@st.composite
def crowded_clusters(draw: st.DrawFn) -> Objects:
    """Return a cluster of one or two nodes with 5 to 15 pending pods without claims, under `pending`."""
    cluster: Objects = draw(clusters())
    nodes = cluster["nodes"][:2]
    names = {node["metadata"]["name"] for node in nodes}
    bound = [pod for pod in cluster["pods"] if pod["spec"]["nodeName"] in names]
    pending = [draw(_pod(f"pending-{number}", ())) for number in range(draw(st.integers(5, 15)))]
    return {**cluster, "nodes": nodes, "pods": bound, "pending": pending}
