"""The shape of `nodeGroups`: a list of static groups, or a mapping of the sources that groups come from."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import (
    BOOLEAN,
    LABEL_KEY,
    NAMESPACE,
    OBJECT_NAME,
    PATH,
    TEXT,
    TEXTS_MAY_BE_EMPTY,
    Bounds,
    duration,
    number,
    validated_text,
    whole,
)
from adapter.foundation.documents.sections import Key, Section, mapping_of
from adapter.foundation.documents.shapes import Anything, ListOf, OneOf
from adapter.foundation.documents.tree import MappingNode, SequenceNode
from recommender.kinds.cluster_size.model.size_settings import (
    ClusterApiGroups,
    ExternalGrpcGroups,
    LabelGroups,
    NodeGroupSources,
    PluginGroups,
    StaticGroup,
)
from recommender.kinds.cluster_size.node_groups.templates import labels_of_selector
from recommender.kinds.cluster_size.reading.options import OPTIONS
from recommender.kinds.cluster_size.reading.templates import SELECTOR_OR_LABELS, TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.selectors import Selector
    from recommender.kinds.cluster_size.model.groups import GroupOptions
    from recommender.kinds.cluster_size.reading.templates import GroupTemplate

SIZE: Final = whole(0, 1_000_000)
_PRICE: Final = number(Bounds(0, 1e9))
_PRICES: Final = mapping_of("prices", TEXTS_MAY_BE_EMPTY, _PRICE)
_LONGEST_NAME: Final = 253
_NO_NAMESPACES: Final = (
    "`clusterAPI.namespaces` is missing: anyone who can create Machines in another namespace would control sizes",
    "write namespaces: [capi-system], those of your node groups",
)


def _check_sizes(given: Given) -> Iterator[DocumentProblem]:
    least, most = given.get("min") or 0, given.get("max")
    if most is not None and most < least:
        yield given.problem("max", f"`max` is {most}, less than `min`, which is {least}", "raise it")


def _check_group(given: Given) -> Iterator[DocumentProblem]:
    yield from _check_sizes(given)
    selector, template = given.get("selector"), given.get("template")
    if selector and template and not selector.matches({**labels_of_selector(selector), **template.labels}):
        message = "`selector` does not select a node with the labels of `template`"
        place = "template.labels" if given.has("template.labels") else "template"
        yield given.problem(place, message, "write labels that the selector asks for")


def _static_group(
    *,
    name: str,
    max_size: int,
    selector: Selector,
    min_size: int = 0,
    price: float | None = None,
    template: GroupTemplate | None = None,
    options: GroupOptions | None = None,
) -> StaticGroup:
    return StaticGroup(
        name=name,
        min_size=min_size,
        max_size=max_size,
        selector=selector,
        price=price,
        capacity=None if template is None else template.capacity,
        labels={**labels_of_selector(selector), **(template.labels if template else {})},
        taints=template.taints if template else (),
        options=options,
    )


def _check_cluster_api(given: Given) -> Iterator[DocumentProblem]:
    if given.has("namespace") and given.has("namespaces"):
        yield given.problem("namespace", "`namespace` cannot be combined with `namespaces`", "add it to the list")
    elif not given.has("namespace") and not given.has("namespaces"):
        yield given.node.problem(*_NO_NAMESPACES)


def _check_sources(given: Given) -> Iterator[DocumentProblem]:
    if not given.node.entries:
        names = ", ".join(each.key for each in _SOURCES.keys)
        yield given.node.problem("`nodeGroups` is empty", f"write one of {names}")
    entry = given.node.entry("clusterAPI")
    if entry is not None and entry.value.is_null:
        yield entry.value.problem(*_NO_NAMESPACES)


def _is_no_address(value: str) -> bool:
    host, separator, port = value.rpartition(":")
    return not (separator and host and port.isascii() and port.isdecimal() and 0 < int(port) < 65536)


def _check_external_grpc(given: Given) -> Iterator[DocumentProblem]:
    missing = [name for name in ("grpc", "google.protobuf") if not _is_installed(name)]
    if missing:
        message = f"`externalGRPC` needs Python packages that are not installed ({', '.join(missing)})"
        yield given.node.problem(message, "install tidewatch[grpc], or use the image of Tidewatch, which has them")
    if given.has("certFile") != given.has("keyFile"):
        present, absent = ("certFile", "keyFile") if given.has("certFile") else ("keyFile", "certFile")
        yield given.problem(present, f"`{present}` is given without `{absent}`", "write both, or neither")
    if given.has("caFile"):
        return
    if given.has("certFile") or given.has("keyFile"):
        key = "certFile" if given.has("certFile") else "keyFile"
        yield given.problem(key, "`caFile` is missing: without it nobody verifies the provider", "write caFile")
    elif not _is_local(given.get("address") or ""):
        message = "`caFile` is missing: without TLS, anyone on the way could change sizes and delete nodes"
        yield given.node.problem(message, "write caFile, and certFile and keyFile for mutual TLS")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _is_local(address: str) -> bool:
    return not address or address.rpartition(":")[0] in {"127.0.0.1", "[::1]", "localhost"}


def _check_plugin(given: Given) -> Iterator[DocumentProblem]:
    if given.get("deleteNodes") and not given.get("writes"):
        yield given.problem("deleteNodes", "`deleteNodes` has no effect without `writes: true`", "write writes: true")


def _sources_of(groups: list[StaticGroup]) -> NodeGroupSources:
    return NodeGroupSources(static=tuple(groups))


_STATIC: Final = Section(
    "nodeGroups",
    _static_group,
    (
        Key(
            "name",
            validated_text(
                "the name of a group",
                lambda name: not 0 < len(name.strip()) <= _LONGEST_NAME,
                "write 1 to 253 characters",
            ),
            "Name of the group.",
            "a",
        ),
        Key("min", SIZE, "Minimum number of nodes, 0 without the key.", into="min_size"),
        Key("max", SIZE, "Maximum number of nodes.", "20", into="max_size"),
        Key("price", _PRICE, "What a node costs in an hour."),
        Key("template", TEMPLATE, "What a new node has, where no node shows it."),
        Key("selector", SELECTOR_OR_LABELS, "Labels of the nodes that belong to it.", "{pool: a}"),
        Key("options", OPTIONS, "What this group overrides."),
    ),
    _check_group,
)
_STATIC_GROUPS: Final = ListOf(
    _STATIC,
    empty=("there are no node groups", "write one, such as {name: a, max: 20, selector: {pool: a}}"),
    unique=lambda group: f"the node group {group.name!r}",
)
_CLUSTER_API: Final = Section(
    "clusterAPI",
    ClusterApiGroups,
    (
        Key(
            "namespaces",
            ListOf(NAMESPACE, lambda names: tuple(dict.fromkeys(names)), _NO_NAMESPACES),
            "Namespaces whose objects are trusted.",
        ),
        Key("namespace", NAMESPACE.then(lambda name: (name,)), "The same as a list of one.", into="namespaces"),
        Key("clusterName", OBJECT_NAME, "Name of the cluster; all without the key."),
        Key("prices", _PRICES, "What a node costs in an hour, by the name of the group."),
        Key(
            "markMachines",
            BOOLEAN,
            "Whether Machines of removable nodes are marked; off without the key. A written `false` keeps the "
            "right to take earlier marks off.",
        ),
    ),
    _check_cluster_api,
)
_BY_LABEL: Final = Section(
    "byLabel",
    LabelGroups,
    (
        Key("key", LABEL_KEY, "Label whose values are the groups.", "cloud.google.com/gke-nodepool"),
        Key("min", SIZE, "Minimum number of nodes of a group.", into="min_size"),
        Key("max", SIZE, "Maximum number of nodes of a group.", into="max_size"),
        Key("prices", _PRICES, "What a node costs in an hour, by value of the label."),
    ),
    _check_sizes,
)
_EXTERNAL_GRPC: Final = Section(
    "externalGRPC",
    ExternalGrpcGroups,
    (
        Key(
            "address",
            validated_text(
                "an address", _is_no_address, "write the host and the port of the provider, such as cloud:8086"
            ),
            "Host and port of the provider.",
            "cloud-provider.kube-system:8086",
        ),
        Key("caFile", PATH, "File with the certificates that sign the provider's."),
        Key("certFile", PATH, "File with the certificate that the provider verifies."),
        Key("keyFile", PATH, "File with the key of that certificate."),
        Key("timeout", duration(0.1, 60), "How long a call may take.", into="timeout_seconds"),
        Key("prices", _PRICES, "What a node costs in an hour, by the id of the group."),
        Key("deleteNodes", BOOLEAN, "Whether removable nodes are drained and deleted.", into="delete_nodes"),
    ),
    _check_external_grpc,
)
_PLUGIN: Final = Section(
    "plugin",
    PluginGroups,
    (
        Key("name", TEXT, "Entry point of the group tidewatch.node_groups.", "NAME"),
        Key("options", mapping_of("plugin.options", TEXTS_MAY_BE_EMPTY, Anything()), "What it takes."),
        Key("writes", BOOLEAN, "Whether sizes are written through it with the output scale."),
        Key("deleteNodes", BOOLEAN, "Whether removable nodes are drained and deleted.", into="delete_nodes"),
    ),
    _check_plugin,
)
_SOURCES: Final = Section(
    "nodeGroups",
    NodeGroupSources,
    (
        Key("static", _STATIC_GROUPS, "Groups of this file."),
        Key("clusterAPI", _CLUSTER_API, "Groups of Cluster API."),
        Key("externalGRPC", _EXTERNAL_GRPC, "Groups of a provider that speaks Cluster Autoscaler's gRPC protocol."),
        Key("byLabel", _BY_LABEL, "A group for each value of a label."),
        Key("plugin", _PLUGIN, "Groups of a plugin."),
    ),
    _check_sources,
)
NODE_GROUPS: Final = OneOf(
    {MappingNode: _SOURCES, SequenceNode: ListOf(_STATIC, _sources_of, _STATIC_GROUPS.empty, _STATIC_GROUPS.unique)}
)
