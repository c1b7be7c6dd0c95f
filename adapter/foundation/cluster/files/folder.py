"""The facts of a cluster from a folder of files that is followed while the process runs (`--objects`).

A file is replaced by renaming another over it. While a file cannot be read, its last good content stays in use, and the
state's problems name it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from adapter.foundation.cluster.files.contents import Contents
from adapter.foundation.cluster.files.reading import NO_NEEDS, ClusterFilesError, cluster_files, read_file, state_of
from adapter.foundation.cluster.values.hpas_by_namespace import AutoscalersByNamespace
from adapter.foundation.cluster.values.placed_pods import PlacedPods, pods_by_place
from adapter.foundation.cluster.values.state import ClusterNeeds, ClusterPod, ClusterState, Observed, Unknown
from adapter.foundation.cluster.values.storage import Storage
from adapter.foundation.files.followed_files import FollowedFiles
from adapter.foundation.time.pace import UNPACED, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from adapter.foundation.cluster.facts.scale_targets import ScaledObject, ScaleTarget

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _File:
    """The last good content of a file, and what is wrong with it now."""

    contents: Contents
    problem: str | None = None
    was_good: bool = True
    """Whether its content was ever valid."""


_Followed: TypeAlias = "FollowedFiles[None, _File]"


@dataclass(frozen=True, slots=True)
class _Known:
    """The contents of all files together; replaced as a whole."""

    contents: Contents
    time: float
    """When the folder was last checked, in Unix seconds."""
    problems: tuple[str, ...]
    placed: PlacedPods
    needs: ClusterNeeds
    """The needs for which the files were read."""


class ClusterFolder:
    """The facts of a folder. One thread calls `refresh`; any thread may read the facts."""

    def __init__(
        self,
        directory: Path,
        pace: Pace = UNPACED,
        report: Callable[[str], None] = lambda _: None,
        changed: Callable[[], None] = lambda: None,
        wall_clock: Callable[[], float] = time.time,
        needs: ClusterNeeds = NO_NEEDS,
    ) -> None:
        """Read nothing before the first `refresh`, and then only the optional facts (such as pods) that `needs` has.

        `report` is called with the problem of a file, once whenever the problem changes. `changed` is called after a
        refresh that read a file or found one gone.
        """
        self._directory = directory
        self._pace = pace
        self._report = report
        self._changed = changed
        self._wall_clock = wall_clock
        self._needs = needs
        self._followed: dict[Path, _Followed] = {}
        self._files: dict[Path, _File] = {}
        self._known: _Known | None = None
        self._stated: tuple[Contents, ClusterNeeds, ClusterState] | None = None

    @property
    def needs(self) -> ClusterNeeds:
        """The needs for which the files are read."""
        return self._needs

    def change(self, needs: ClusterNeeds) -> None:
        """Let the next `refresh` read the files for other needs."""
        self._needs = needs

    def refresh(self) -> None:
        """Read new and changed files, and forget removed ones.

        Raises ClusterFilesError if the folder cannot be listed or has no files; the facts then stay as they are, and
        their times show how old they are.
        """
        needs = self._needs
        paths = cluster_files(self._directory)
        for path in paths:
            if path in self._followed:
                self._followed[path].check()
        self._followed = {path: self._followed.get(path) or self._follow(path) for path in paths}
        files = {path: followed.value for path, followed in self._followed.items()}
        if self._known is not None and _same(files, self._files):
            self._known = replace(self._known, time=self._wall_clock(), needs=needs)
            return
        self._files = files
        together = Contents()
        for file in files.values():
            together.update(file.contents)
        problems = tuple(file.problem for file in files.values() if file.problem)
        self._known = _Known(together, self._wall_clock(), problems, _placed_pods(together, self._known), needs)
        self._changed()

    def state(self, needs: ClusterNeeds) -> ClusterState:
        """Return the facts as the folder stated them when it was last checked."""
        known, stated = self._known, self._stated
        if known is None:
            return _unknown(needs, self._unread())
        if stated is None or stated[0] is not known.contents or stated[1] != needs:
            # Counting takes a while, and the files seldom change.
            unread = Unknown(f"the files in {self._directory} have not been read for this yet")
            found = state_of(known.contents, _answered_needs(known.needs, needs), known.time, self._directory)
            stated = known.contents, needs, _with_unread(found, known.needs, needs, unread)
            self._stated = stated
        return _confirmed_state(stated[2], known)

    def placed_pods(self) -> Observed[PlacedPods] | Unknown:
        """Return the bound pods by place, as the files state them."""
        known = self._known
        if known is None:
            return self._unread()
        pods = self.state(self._needs).pods
        return pods if isinstance(pods, Unknown) else Observed(known.placed, pods.time)

    def target(self, target: ScaleTarget) -> Observed[ScaledObject | None] | Unknown:
        """Return the size of an object; None if there is no such object."""
        known = self._known
        if known is None:
            return self._unread()
        return known.contents.target(target, known.time)

    def _unread(self) -> Unknown:
        return Unknown(f"the files in {self._directory} have not been read yet")

    def _follow(self, path: Path) -> _Followed:
        def load(_: None) -> _File:
            try:
                return _File(read_file(path, self._pace, self._needs))
            except ClusterFilesError as error:
                self._report(str(error))
                known = self._followed.get(path)
                if known is None or not known.value.was_good:
                    return _File(Contents(), f"{error}: none of its objects are used", was_good=False)
                return _File(known.value.contents, f"{error}: its last good content stays in use")

        # For new needs, a file counts as changed, since more of it must be read.
        return FollowedFiles(lambda: ((_stamp(path), self._needs), None), load, unusable=())


def _placed_pods(contents: Contents, before: _Known | None) -> PlacedPods:
    now = pods_by_place(pod for pod in contents.pods.values() if isinstance(pod, ClusterPod))
    return now if before is None else now.reuse_tuples(before.placed)


def _answered_needs(read: ClusterNeeds, needs: ClusterNeeds) -> ClusterNeeds:
    """Return the part of the needs for which the files have been read."""
    return replace(
        needs,
        pods=needs.pods and read.pods,
        pod_selectors=needs.pod_selectors and read.pod_selectors,
        scheduling=needs.scheduling and read.scheduling,
        objects=needs.objects & read.objects,
    )


def _with_unread(state: ClusterState, read: ClusterNeeds, needs: ClusterNeeds, unread: Unknown) -> ClusterState:
    """Return the state, in which facts for which the files have not been read are unknown rather than absent."""
    if _answered_needs(read, needs) == needs:
        return state
    unknown = _unknown(needs, unread)
    if needs.scheduling and not read.scheduling:
        state = replace(
            state,
            workloads=unread,
            disruption_budgets=unread,
            namespace_labels=unread,
            storage=unknown.storage,
        )
    return replace(
        state,
        pods=unread if needs.pods and not read.pods else state.pods,
        pod_selectors=unread if needs.pod_selectors and not read.pod_selectors else state.pod_selectors,
        objects={**unknown.objects, **state.objects},
    )


def _same(files: Mapping[Path, _File], others: Mapping[Path, _File]) -> bool:
    return files.keys() == others.keys() and all(file is others[path] for path, file in files.items())


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes with the file; its last part, the ctime, also changes with permissions."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _unknown(needs: ClusterNeeds, reason: Unknown) -> ClusterState:
    state = ClusterState(
        nodes=reason if needs.nodes else ClusterState().nodes,
        autoscalers=AutoscalersByNamespace(dict.fromkeys(needs.autoscaler_namespaces, reason)),
        counts=dict.fromkeys(needs.counts, reason),
        pods=reason if needs.pods else ClusterState().pods,
        pod_selectors=reason if needs.pod_selectors else ClusterState().pod_selectors,
        objects=dict.fromkeys(needs.objects, reason),
    )
    if not needs.scheduling:
        return state
    storage = Storage(reason, reason, reason, reason)
    return replace(state, workloads=reason, disruption_budgets=reason, namespace_labels=reason, storage=storage)


def _confirmed_state(state: ClusterState, known: _Known) -> ClusterState:
    def confirmed(fact: Observed[T] | Unknown) -> Observed[T] | Unknown:
        return Observed(fact.value, known.time) if isinstance(fact, Observed) else fact

    storage = state.storage
    return replace(
        state,
        nodes=confirmed(state.nodes),
        autoscalers=AutoscalersByNamespace(
            {namespace: confirmed(fact) for namespace, fact in state.autoscalers.items()}
        ),
        counts={query: confirmed(fact) for query, fact in state.counts.items()},
        pods=confirmed(state.pods),
        pod_selectors=confirmed(state.pod_selectors),
        workloads=confirmed(state.workloads),
        disruption_budgets=confirmed(state.disruption_budgets),
        namespace_labels=confirmed(state.namespace_labels),
        storage=Storage(
            confirmed(storage.claims),
            confirmed(storage.volumes),
            confirmed(storage.classes),
            confirmed(storage.csi_nodes),
        )
        if storage
        else None,
        objects={kind: confirmed(fact) for kind, fact in state.objects.items()},
        problems=(*known.problems, *state.problems),
    )
