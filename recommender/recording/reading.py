"""Reads the files of a recording."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from adapter.foundation.files.file_contents import is_folder, opened_regular
from adapter.foundation.objects.pod_requests import CPU, MEMORY
from adapter.foundation.reports.counts import agreeing, count_of
from recommender.recording.event_forms import (
    EVENTS,
    NO_NODE,
    VERSION,
    Alive,
    Begin,
    NodeCame,
    NodeGone,
    PodBound,
    PodCame,
    PodGone,
    PodKindForm,
    line_of,
    node_of,
    pod_of,
    refuse_impossible_time,
)
from recommender.recording.event_log import files_until
from recommender.recording.recording import RecordedNode, RecordedPod, Recording, RecordingError, RecordingGap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapter.foundation.cluster.values.pods import ClusterPod
    from recommender.recording.event_forms import RecordedEvent

GAP_SECONDS: Final = 300.0
"""A time without a sign of life that is longer than this is a gap about which nothing is known."""
_LONGEST_SECONDS: Final = 3 * 366 * 86_400.0
"""Longest recording that is possible; if one seems longer, one of its times is from a wrong clock."""


def read_recording(
    path: Path, last_seconds: float | None = None, end: float | None = None, *, now: float = math.inf
) -> Recording:
    """Return the recording in a file, or in all files of a folder. Raises RecordingError.

    If stated, `end` is where it is cut off, and `last_seconds` is how much of it before the end is returned. Files that
    began after `now` are left out, unless all did.
    """
    files, ahead = files_until(path, now) if is_folder(path) else ([path], ())
    if not files:
        raise RecordingError(
            f"--recording {path}: there is no recording: `run` writes one into the folder `recording` of its `state` "
            "with `record: 30d` in its configuration"
        )
    reader, problems = _Reader(), list[RecordingError]()
    for file in files:
        try:
            reader.read(file)
        except RecordingError as error:
            problems.append(error)
    if len(problems) == len(files):
        raise problems[0]
    reasons = [*map(str, problems), *(f"{file} begins in the future, so a clock was wrong" for file in ahead)]
    notes = tuple(f"A file is left out: {reason}." for reason in reasons)
    return _within(reader.recording(str(path), notes), last_seconds, end)


@dataclass(slots=True)
class _File:
    """The meaning of the numbers in one file."""

    kinds: dict[int, int] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)
    pods: dict[int, str] = field(default_factory=dict)
    listed_pods: set[str] = field(default_factory=set)
    listed_nodes: set[str] = field(default_factory=set)
    is_listing: bool = True


class _Reader:
    def __init__(self) -> None:
        self._kinds: dict[bytes, int] = {}
        self._pod_kinds: list[ClusterPod] = []
        self._others: list[bool] = []
        self._nodes: list[RecordedNode] = []
        self._present: dict[str, int] = {}
        """The places of the current nodes in the list of nodes, by name."""
        self._left: dict[str, float] = {}
        """When the last node of each name was removed, or when its facts changed."""
        self._pods: dict[str, RecordedPod] = {}
        self._gaps: list[RecordingGap] = []
        self._start: float | None = None
        self._alive = 0.0
        self._notes: list[str] = []

    def read(self, path: Path) -> None:
        """Read a file; an incomplete end is skipped. Raises RecordingError."""
        known = _File()
        for event in self._events(path):
            if isinstance(event, Begin):
                self._begin(path, event)
            elif isinstance(event, Alive):
                self._live(known, event.time)
            elif isinstance(event, PodKindForm):
                known.kinds[event.number] = self._kind(event)
            elif isinstance(event, PodCame) and event.kind not in known.kinds:
                self._notes.append(
                    f"{path.name}: a pod has a kind that the file does not state; the rest of the file is left out."
                )
                return
            elif isinstance(event, NodeCame | NodeGone):
                self._node(known, event)
            else:
                self._pod(known, event)

    def _events(self, path: Path) -> Iterator[RecordedEvent]:
        try:
            with opened_regular(path) as stream:
                for number, line in enumerate(stream, 1):
                    try:
                        event = EVENTS.decode(line)
                        refuse_impossible_time(event)
                    except (msgspec.MsgspecError, OverflowError) as error:
                        if number == 1:
                            raise RecordingError(
                                f"{path} is not a recording: {error}: name a file that `run` writes with `record: 30d`"
                            ) from error
                        if line.endswith(b"\n"):
                            self._notes.append(
                                f"{path.name}, line {number}: {error}; the rest of the file is left out."
                            )
                        return
                    yield event
        except OSError as error:
            raise RecordingError(
                f"--recording {path} cannot be read: {error.strerror or error}: name a file of a recording, or "
                "their folder"
            ) from error

    def _begin(self, path: Path, event: Begin) -> None:
        if event.version != VERSION:
            raise RecordingError(
                f"{path}: it has version {event.version} of the format, and this program reads {VERSION}: use the "
                "version of Tidewatch that wrote it"
            )
        if self._start is None:
            self._start = self._alive = event.time

    def _live(self, known: _File, time: float) -> None:
        if known.is_listing:
            # Objects of an earlier file that this one lacks have ended meanwhile.
            known.is_listing = False
            for name in self._present.keys() - known.listed_nodes:
                self._node_gone(name, self._alive)
            for uid, pod in self._pods.items():
                if pod.gone is None and uid not in known.listed_pods:
                    self._pods[uid] = replace(pod, gone=self._alive)
        if time - self._alive > GAP_SECONDS:
            self._gaps.append(RecordingGap(self._alive, time))
        self._alive = max(self._alive, time)

    def _kind(self, form: PodKindForm) -> int:
        key = line_of(msgspec.structs.replace(form, number=0))
        if key not in self._kinds:
            self._kinds[key] = len(self._pod_kinds)
            self._pod_kinds.append(pod_of(form))
            self._others.append(form.looks_at_others)
        return self._kinds[key]

    def _node(self, known: _File, event: NodeCame | NodeGone) -> None:
        if isinstance(event, NodeGone):
            name = known.nodes.pop(event.number, "")
            self._node_gone(name, event.time)
            return
        known.nodes[event.number] = event.name
        known.listed_nodes.add(event.name)
        node, place = node_of(event), self._present.get(event.name)
        if place is not None and known.is_listing and self._nodes[place].node == node:
            return
        came = event.time
        if place is not None:
            self._node_gone(event.name, event.time)
        elif event.created > self._alive - GAP_SECONDS or self._start == event.time:
            came = min(event.created, event.time)
        # A node has one life at a time, even if the clock was set back or two files are about the same time.
        came = max(came, self._left.get(event.name, 0.0))
        self._present[event.name] = len(self._nodes)
        self._nodes.append(RecordedNode(node, came, None))

    def _node_gone(self, name: str, time: float) -> None:
        place = self._present.pop(name, None)
        if place is not None:
            self._left[name] = max(time, self._nodes[place].came)
            self._nodes[place] = replace(self._nodes[place], gone=time)

    def _pod(self, known: _File, event: PodCame | PodBound | PodGone) -> None:
        if isinstance(event, PodCame):
            known.pods[event.number] = event.uid
            known.listed_pods.add(event.uid)
            bound = event.bound if event.node != NO_NODE else None
            came = RecordedPod(known.kinds[event.kind], event.created, bound, None, known.nodes.get(event.node, ""))
            before = self._pods.get(event.uid, came)
            # It exists, whatever a file of another process that ends later says.
            where = before if before.bound is not None else came
            self._pods[event.uid] = replace(before, gone=None, bound=where.bound, node=where.node)
            return
        uid = known.pods.get(event.number, "")
        if uid not in self._pods:
            return
        if isinstance(event, PodBound):
            node = known.nodes.get(event.node, "")
            self._pods[uid] = replace(self._pods[uid], bound=event.bound, node=node)
        else:
            self._pods[uid] = replace(self._pods[uid], gone=event.time)

    def recording(self, source: str, further_notes: tuple[str, ...]) -> Recording:
        """Return the recording that was read. Raises RecordingError."""
        if self._start is None or self._alive <= self._start:
            raise RecordingError(f"{source}: it covers no time yet: let `run` record for longer")
        # An end before the beginning is from another clock, or of a file that was cut off.
        pods = [one for one in self._pods.values() if one.gone is None or one.gone > one.created]
        nodes = tuple(one for one in self._nodes if one.gone is None or one.gone > one.came)
        others = sum(self._others[pod.kind] for pod in pods)
        notes = [*further_notes, *self._notes]
        asks = [any(kind.resources.requests.get(name) for name in (CPU, MEMORY)) for kind in self._pod_kinds]
        if unknown := sum(not asks[pod.kind] for pod in pods):
            notes.append(
                f"Without requests for CPU and memory, {unknown} of {count_of(len(pods), 'pod')} "
                f"{agreeing(unknown, 'takes', 'take')} no room."
            )
        if others:
            notes.append(
                f"Claims, host ports, spread constraints and affinity to other pods, which {count_of(others, 'pod')} "
                "had, are not recorded: such pods find a place more easily than in the cluster."
            )
        return Recording(
            source,
            self._start,
            self._alive,
            nodes,
            tuple(sorted(pods, key=lambda pod: pod.created)),
            tuple(self._pod_kinds),
            tuple(self._gaps),
            tuple(notes),
        )


def _within(recording: Recording, last_seconds: float | None, end: float | None) -> Recording:
    """Return the requested part of a recording. Raises RecordingError if nothing of that time is recorded."""
    until = recording.end if end is None else min(end, recording.end)
    start = recording.start if last_seconds is None else max(recording.start, until - last_seconds)
    if start >= until:
        raise RecordingError(f"{recording.source}: it has no data for this time: correct --last and --end")
    if until - start > _LONGEST_SECONDS:
        raise RecordingError(
            f"{recording.source}: it spans {(until - start) / 86_400:,.0f} days, so a clock was wrong when one of its "
            "files was written: choose the time with --last and --end"
        )
    return replace(
        recording,
        start=start,
        end=until,
        nodes=tuple(
            replace(one, gone=None if one.gone is None or one.gone > until else one.gone)
            for one in recording.nodes
            if one.came < until and (one.gone is None or one.gone > start)
        ),
        pods=tuple(
            replace(
                one,
                gone=None if one.gone is None or one.gone > until else one.gone,
                bound=None if one.bound is None or one.bound >= until else one.bound,
            )
            for one in recording.pods
            if one.created < until and (one.gone is None or one.gone > start)
        ),
        gaps=tuple(
            RecordingGap(max(gap.start, start), min(gap.end, until))
            for gap in recording.gaps
            if gap.start < until and gap.end > start
        ),
    )
