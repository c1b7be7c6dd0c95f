"""The facts of a cluster from files: the output of `kubectl get nodes,pods,… -o json` or `-o yaml`, or folders of it.

The files are all that is known of the cluster. If they hold no object of a kind, its count is unknown and not 0, since
nothing shows whether the cluster has none or the kind was not written to the files. HPAs are different: files without
any describe a cluster without any.
"""

from __future__ import annotations

import errno
import re
from codecs import BOM_UTF8
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from adapter.foundation.cluster.facts.count_queries import selector_of
from adapter.foundation.cluster.facts.pod_selectors import SELECTING_KINDS, selector_place
from adapter.foundation.cluster.files.contents import Contents, contents_of, whole_objects_in
from adapter.foundation.cluster.files.scheduling import objects_in, scheduling_in
from adapter.foundation.cluster.stores.object_counts import distinct
from adapter.foundation.cluster.values.hpas_by_namespace import (
    EVERYWHERE,
    Autoscalers,
    AutoscalersByNamespace,
    owners_by_namespace,
)
from adapter.foundation.cluster.values.placed_pods import pod_problems
from adapter.foundation.cluster.values.state import (
    Autoscaler,
    ClusterNeeds,
    ClusterNode,
    ClusterPod,
    ClusterState,
    Observed,
    PodSelector,
    Unknown,
)
from adapter.foundation.files.file_contents import first_bytes, is_folder, mapped_regular, read_regular
from adapter.foundation.sources.manifest_forms import ManifestError
from adapter.foundation.time.pace import UNPACED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from adapter.foundation.cluster.values.state import CountQuery, ObjectKind
    from adapter.foundation.objects.selectors import Selector
    from adapter.foundation.sources.kubernetes.lists.items import Document
    from adapter.foundation.time.pace import Pace

    _Reader: TypeAlias = Callable[[Document, bool], Contents]

NO_NEEDS = ClusterNeeds()

_SUFFIXES = frozenset({".json", ".yaml"})
_LARGEST_BYTES = 512 << 20
"""Limit on a file's size; 50,000 whole pods in JSON take half of it."""

_FIRST_BYTES = 4096
_NOT_A_SPACE = re.compile(rb"\S")

_COMMANDS = {
    "pods": "pods -A",
    "services": "services -A",
    "namespaces": "namespaces",
    "endpoints": "endpointslices -A",
}


class ClusterFilesError(Exception):
    """Files cannot be read; the message is `FILE:LINE: reason`."""


def read_contents(path: Path, needs: ClusterNeeds = NO_NEEDS) -> Contents:
    """Return what a file, or all files of a folder together, state. Raises ClusterFilesError.

    Pods, the objects that select them, and the objects that scheduling depends on are read only if `needs` has them.
    JSON of any size is mapped into memory, so the files must not be truncated meanwhile: that would kill the process.
    """
    together, read = Contents(), _reader(UNPACED, needs)
    for file in cluster_files(path):
        together.update(_read(file, read, is_mapped=True))
    return together


def read_whole_objects(path: Path, kinds: frozenset[ObjectKind]) -> Contents:
    """Return only the objects of the given kinds, which is much faster than reading all. Raises ClusterFilesError.

    An object that cannot be read is skipped, since `read_contents` names it.
    """
    together = Contents()
    for file in cluster_files(path):
        found = _read(file, lambda body, is_json: whole_objects_in(body, is_json=is_json, kinds=kinds), is_mapped=True)
        together.update(found)
    return together


def cluster_files(path: Path) -> list[Path]:
    """Return the file, or the `*.json` and `*.yaml` of the folder in the order of their names.

    Raises ClusterFilesError if a folder cannot be listed or has no such files.
    """
    if not is_folder(path):
        return [path]
    try:
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    except OSError as error:
        raise ClusterFilesError(f"{path}: the folder cannot be listed: {error.strerror}") from error
    if not files:
        raise ClusterFilesError(f"{path}: there is no *.json and no *.yaml in this folder: add what kubectl prints")
    return files


def read_file(path: Path, pace: Pace = UNPACED, needs: ClusterNeeds = NO_NEEDS) -> Contents:
    """Return what one file of at most 512 MiB states, as `read_contents` does. Raises ClusterFilesError."""
    # Not mapped into memory: a mapped file that somebody truncates ends the process.
    return _read(path, _reader(pace, needs), is_mapped=False)


def _reader(pace: Pace, needs: ClusterNeeds) -> _Reader:
    return lambda body, is_json: contents_of(body, is_json=is_json, pace=pace, needs=needs)


def _read(path: Path, read: _Reader, *, is_mapped: bool) -> Contents:
    try:
        if is_mapped and _is_json(path, first_bytes(path, _FIRST_BYTES)):
            with mapped_regular(path) as body:
                return _contents(path, body, read, is_json=True)
        body = read_regular(path, _LARGEST_BYTES)
        return _contents(path, body, read, is_json=_is_json(path, body))
    except OSError as error:
        is_regular = error.errno != errno.EINVAL
        fix = "check that it exists and is readable" if is_regular else "save its content in a regular file"
        raise ClusterFilesError(f"{path}: the file cannot be read: {error.strerror}: {fix}") from error
    except ManifestError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        fix = "write the file as `kubectl get … -o json` or `-o yaml` prints it"
        raise ClusterFilesError(f"{place}: {error}: {fix}") from error


def _contents(path: Path, body: Document, read: _Reader, *, is_json: bool) -> Contents:
    if _NOT_A_SPACE.search(body) is None:
        raise ClusterFilesError(f"{path}: the file is empty: remove it, or write `items: []` if it is a List")
    return read(body, is_json)


def state_of(contents: Contents, needs: ClusterNeeds, time: float, where: Path) -> ClusterState:
    """Return the facts that are needed, as the contents of files state them; `where` names the files in messages."""
    state = ClusterState(
        nodes=_nodes(contents, time, where) if needs.nodes else ClusterState().nodes,
        autoscalers=AutoscalersByNamespace(
            {
                namespace: owners
                for wanted in needs.autoscaler_namespaces
                for namespace, owners in _autoscalers(contents, wanted, time).items()
            }
        ),
        counts={query: _count(contents, query, time, where) for query in needs.counts},
        pods=_pods(contents, time, where) if needs.pods else ClusterState().pods,
        pod_selectors=(Observed(_selectors(contents), time) if needs.pod_selectors else ClusterState().pod_selectors),
        objects=objects_in(contents, needs, time, where),
        problems=tuple(node for node in contents.nodes.values() if isinstance(node, str)) if needs.nodes else (),
        placement_problems=tuple(_placement_problems(contents, needs)),
    )
    return scheduling_in(state, contents, time, where) if needs.scheduling else state


def _is_json(path: Path, body: bytes) -> bool:
    if path.suffix in {".json", ".yaml", ".yml"}:
        return path.suffix == ".json"
    return body[:_FIRST_BYTES].removeprefix(BOM_UTF8).lstrip()[:1] == b"{"


def _unknown_without_files(kind: str, where: Path) -> Unknown:
    command = f"kubectl get {_COMMANDS.get(kind, kind)} -o json"
    return Unknown(
        f"{where} contains no {kind}: add the output of `{command}`; if that has no items either, kubectl asked a "
        f"cluster without {kind}: `kubectl config current-context` names it"
    )


def _nodes(contents: Contents, time: float, where: Path) -> Observed[tuple[ClusterNode, ...]] | Unknown:
    nodes = [node for node in contents.nodes.values() if isinstance(node, ClusterNode)]
    if nodes:
        return Observed(tuple(sorted(nodes, key=lambda node: node.name)), time)
    problem = next((node for node in contents.nodes.values() if isinstance(node, str)), None)
    return Unknown(problem) if problem else _unknown_without_files("nodes", where)


def _pods(contents: Contents, time: float, where: Path) -> Observed[tuple[ClusterPod, ...]] | Unknown:
    if not contents.pods:
        return _unknown_without_files("pods", where)
    pods = (pod for _, pod in sorted(contents.pods.items(), key=itemgetter(0)) if isinstance(pod, ClusterPod))
    return Observed(tuple(pod for pod in pods if not pod.has_ended), time)


def _selectors(contents: Contents) -> tuple[PodSelector, ...]:
    """Return the selectors kind by kind, within each kind in the order of namespaces and names."""
    found = [selector for selector in contents.pod_selectors.values() if isinstance(selector, PodSelector)]
    found.sort(key=selector_place)
    return tuple(selector for kind in SELECTING_KINDS for selector in found if selector.kind == kind)


def _placement_problems(contents: Contents, needs: ClusterNeeds) -> Iterator[str]:
    if needs.pods:
        yield from pod_problems([pod for pod in contents.pods.values() if isinstance(pod, str)])
    if needs.pod_selectors:
        yield from (selector for selector in contents.pod_selectors.values() if isinstance(selector, str))


def _autoscalers(contents: Contents, wanted: str, time: float) -> dict[str, Autoscalers]:
    found = [
        (key[0], one)
        for key, one in sorted(contents.autoscalers.items(), key=itemgetter(0))
        if wanted in {EVERYWHERE, key[0]}
    ]
    usable = Observed(tuple(one for _, one in found if isinstance(one, Autoscaler)), time)
    # The first reason of each namespace.
    unusable = {namespace: one for namespace, one in reversed(found) if isinstance(one, str)}
    return owners_by_namespace(wanted, usable, unusable)


def _count(contents: Contents, query: CountQuery, time: float, where: Path) -> Observed[int] | Unknown:
    selector = selector_of(query)
    if isinstance(selector, Unknown):
        return selector
    if query.kind not in contents.labels:
        return _unknown_without_files(query.kind, where)
    if query.kind != "endpoints":
        return Observed(sum(1 for _ in _selected_names(contents, query, selector)), time)
    services: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for namespace, name in _selected_names(contents, query, selector):
        found = contents.slices[namespace, name]
        services.setdefault((namespace, found.service), []).append(found.addresses)
    return Observed(sum(distinct(addresses) for addresses in services.values()), time)


def _selected_names(contents: Contents, query: CountQuery, selector: Selector) -> Iterator[tuple[str, str]]:
    for (namespace, name), labels in contents.labels[query.kind].items():
        if query.namespace in {"", namespace} and selector.matches(labels):
            yield namespace, name
