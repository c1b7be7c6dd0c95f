"""Recordings of a cluster: written, continued by the next process, read back, and deleted when they are old."""

from __future__ import annotations

import errno
import logging
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.constraints import LocalVolume, NodeSelectorTerm, PodScheduling, Toleration
from adapter.foundation.cluster.values.state import ClusterState, Observed, Unknown
from adapter.foundation.objects.requirements import Operator, Requirement
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.pace import UNPACED
from recommender.recording.event_forms import pod_kind_form, pod_of
from recommender.recording.event_log import files_of
from recommender.recording.reading import read_recording
from recommender.recording.recording import RecordingError, RecordingGap
from recommender.running.history.cluster_recorder import ClusterRecorder
from tests.recommender.kinds.cluster_size.builders import node, pod
from tests.recommender.recording.written_recordings import HOUR, START, Look, write

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.cluster.values.state import ClusterPod


def test_nodes_and_pods_are_read_back_with_their_times(tmp_path: Path) -> None:
    first, second = node("n1", labels={"pool": "a"}), node("n2", created=START + 60)
    waiting = pod("web-1", "2", created=START + 60)
    placed = replace(waiting, node="n2", phase="Running", bound_at=START + 100)
    write(
        tmp_path,
        [
            (START, [first], []),
            (START + 60, [first, second], [waiting]),
            (START + 120, [first, second], [placed]),
            (START + 180, [first], []),
            (START + 240, [first], []),
        ],
    )
    found = read_recording(tmp_path)
    assert (found.start, found.end) == (START, START + 240)
    assert [(one.node.name, one.came, one.gone) for one in found.nodes] == [
        ("n1", 0.0, None),
        ("n2", START + 60, START + 180),
    ]
    assert found.nodes[0].node.labels == first.labels
    assert found.nodes[0].node.allocatable == first.allocatable
    (one,) = found.pods
    assert (one.created, one.bound, one.node, one.gone) == (START + 60, START + 100, "n2", START + 180)
    assert found.pod_kinds[one.kind].resources.requests == waiting.resources.requests
    assert found.gaps == ()


def test_a_node_that_changes_while_it_is_new_has_one_life_at_a_time(tmp_path: Path) -> None:
    starting = node("n1", created=START + 55, taints=("node.kubernetes.io/not-ready:NoSchedule",))
    ready = replace(starting, taints=())
    labelled = replace(ready, labels={**ready.labels, "pool": "a"})
    write(
        tmp_path,
        [
            (START, [], []),
            (START + 60, [starting], []),
            (START + 70, [ready], []),
            (START + 80, [labelled], []),
            (START + 90, [], []),
            (START + 120, [replace(ready, created=START + 115)], []),
        ],
    )
    lives = [(one.came - START, one.gone and one.gone - START) for one in read_recording(tmp_path).nodes]
    assert lives == [(55, 70), (70, 80), (80, 90), (115, None)]


def test_everything_that_a_decision_reads_from_a_pod_is_recorded() -> None:
    scheduling = PodScheduling(
        node_selector=(("disk", "nvme"),),
        node_terms=(NodeSelectorTerm((Requirement("zone", Operator.IN, ("a", "b")),), None, ("n9",)),),
        tolerations=(Toleration("gpu", "Exists", "", "NoSchedule"),),
        local_volumes=(("cache", LocalVolume.EMPTY_DIR),),
    )
    one = pod(
        "job-1", controller="job", scheduling=scheduling, annotations={"a": "b"}, priority=7, extended={"x/y": "2"}
    )
    read = pod_of(pod_kind_form(3, one))
    assert read.facts is not None
    assert read.facts.scheduling == scheduling
    assert (read.priority, read.resources.requests) == (7, one.resources.requests)
    assert read.facts.annotations == {"a": "b"}
    assert read.controller is not None
    assert (read.controller.kind, read.controller.name) == ("ReplicaSet", "job")


def test_truncated_line_loses_only_itself(tmp_path: Path) -> None:
    looks = [(START + 60 * step, [node("n1")], [pod("web", node="n1")]) for step in range(5)]
    write(tmp_path, looks)
    (file,) = files_of(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    found = read_recording(tmp_path)
    assert (found.end, len(found.pods), found.notes) == (START + 180, 1, ())


def test_next_process_continues_and_pods_that_ended_meanwhile_have_an_end(tmp_path: Path) -> None:
    stays, ends = pod("stays", node="n1"), pod("ends", node="n1")
    write(tmp_path, [(START, [node("n1")], [stays, ends]), (START + 60, [node("n1")], [stays, ends])])
    write(tmp_path, [(START + HOUR, [node("n1")], [stays]), (START + HOUR + 60, [node("n1")], [stays])])
    found = read_recording(tmp_path)
    assert sorted((one.gone is None, one.gone) for one in found.pods) == [(False, START + 60), (True, None)]
    assert len(found.nodes) == 1
    assert found.gaps == (RecordingGap(START + 60, START + HOUR),)


def test_objects_in_a_truncated_last_write_that_are_gone_afterwards_are_left_out(tmp_path: Path) -> None:
    late, young = pod("late", created=START + 55), node("young", created=START + 55)
    known: list[Look] = [(START + at, [node("n1")], []) for at in (0, 50)]
    write(tmp_path, [*known, (START + 60, [node("n1"), young], [late])])
    (file,) = files_of(tmp_path)
    file.write_bytes(file.read_bytes()[:-3])
    write(tmp_path, [(START + HOUR, [node("n1")], []), (START + HOUR + 60, [node("n1")], [])])
    found = read_recording(tmp_path)
    assert [one.node.name for one in found.nodes] == ["n1"]
    assert found.pods == ()


def test_pods_that_ended_before_their_creation_are_left_out(tmp_path: Path) -> None:
    ahead = pod("ahead", created=START + 90)
    pods: list[tuple[float, list[ClusterPod]]] = [(0, []), (60, [ahead]), (70, []), (120, [])]
    write(tmp_path, [(START + at, [node("n1")], there) for at, there in pods])
    assert read_recording(tmp_path).pods == ()


def test_a_pod_that_another_process_lists_later_has_not_ended(tmp_path: Path) -> None:
    """Two processes write into one folder, and the pod is younger than the beginning of the second file."""
    present = pod("web", node="n1", created=START + HOUR + 30)
    looks: list[Look] = [(START + HOUR * hour, [node("n1")], []) for hour in range(2)]
    write(tmp_path, [*looks, (START + HOUR + 60, [node("n1")], [present])])
    write(tmp_path, [(START + HOUR, [node("n1")], []), (START + HOUR + 60, [node("n1")], [present])])
    (one,) = read_recording(tmp_path).pods
    assert one.gone is None


def test_a_node_has_one_life_at_a_time_even_if_two_files_overlap(tmp_path: Path) -> None:
    """After the clock was set back, the second file lacks a node at its start, and the first one has it later."""
    known, other = node("n1"), node("n2", created=START)
    write(tmp_path, [(START + HOUR * hour, [known, other], []) for hour in range(3)])
    write(tmp_path, [(START + 60, [known], []), *[(START + at, [known, other], []) for at in (120, 4 * HOUR)]])
    lives = [(one.came - START, one.gone) for one in read_recording(tmp_path).nodes if one.node.name == "n2"]
    assert lives == [(0, START + 2 * HOUR), (2 * HOUR, None)]


def test_old_files_are_deleted_by_age_and_size(tmp_path: Path) -> None:
    days: list[Look] = [(START + 24 * HOUR * day + step, [node("n1")], []) for day in range(35) for step in (0.0, 60.0)]
    write(tmp_path, days)
    assert 30 <= len(files_of(tmp_path)) <= 32
    small = tmp_path / "small"
    pods = [pod(f"web-{number}", node="n1", controller=f"w{number}") for number in range(50)]
    write(small, [(START + 24 * HOUR * day, [node("n1")], pods) for day in range(10)], most_bytes=50_000)
    assert sum(file.stat().st_size for file in files_of(small)) <= 50_000
    assert len(files_of(small)) >= 2


def test_a_cluster_whose_objects_take_more_than_a_part_of_the_limit_is_recorded_for_as_long_as_its_changes_fit(
    tmp_path: Path,
) -> None:
    pods = [pod(f"web-{number}", node="n1", controller=f"w{number}") for number in range(50)]
    looks: list[Look] = [(START + 10 * at, [node("n1")], [*pods, pod(f"job-{at}", node="n1")]) for at in range(200)]
    write(tmp_path, looks, most_bytes=60_000)
    sizes = [file.stat().st_size for file in files_of(tmp_path)]
    assert sizes[0] > 60_000 // 8, "the objects alone take more than a part"
    assert sum(sizes) <= 60_000
    found = read_recording(tmp_path)
    assert (found.start, found.end, found.gaps) == (START, START + 1990, ())


def test_full_disk_is_not_filled_with_empty_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = [START]
    many = tuple(pod(f"web-{number}", controller=f"w{number}") for number in range(200))

    def known() -> ClusterState:
        return ClusterState(nodes=Observed((node("n1"),), times[0]), pods=Observed(many, times[0]))

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    recorder = ClusterRecorder(known, tmp_path, UNPACED, Clock(wall=lambda: times[0]))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", full)
        for _ in range(3):
            recorder.record(24 * HOUR)
            times[0] += 10
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        recorder.record(24 * HOUR)
        times[0] += 10
    recorder.close()
    assert len(read_recording(tmp_path).pods) == 200


@pytest.mark.parametrize("with_folder", [False, True])
def test_a_recording_that_somebody_deletes_begins_anew(tmp_path: Path, *, with_folder: bool) -> None:
    times, folder = [START], tmp_path / "recording"

    def known() -> ClusterState:
        return ClusterState(nodes=Observed((node("n1"),), times[0]), pods=Observed((pod("web"),), times[0]))

    recorder = ClusterRecorder(known, folder, UNPACED, Clock(wall=lambda: times[0]))
    recorder.record(24 * HOUR)
    for file in files_of(folder):
        file.unlink()
    if with_folder:
        folder.rmdir()
    for _ in range(2):
        times[0] += 10
        recorder.record(24 * HOUR)
    recorder.close()
    found = read_recording(folder)
    assert (found.start, found.end, len(found.pods)) == (START + 10, START + 20, 1)


def test_a_recording_that_somebody_truncates_begins_anew(tmp_path: Path) -> None:
    times = [START]

    def known() -> ClusterState:
        return ClusterState(nodes=Observed((node("n1"),), times[0]), pods=Observed((pod("web"),), times[0]))

    recorder = ClusterRecorder(known, tmp_path, UNPACED, Clock(wall=lambda: times[0]))
    recorder.record(24 * HOUR)
    (file,) = files_of(tmp_path)
    os.truncate(file, 0)
    for _ in range(2):
        times[0] += 10
        recorder.record(24 * HOUR)
    recorder.close()
    found = read_recording(tmp_path)
    assert (found.start, found.end, len(found.pods)) == (START + 10, START + 20, 1)


def test_part_of_a_recording_is_selected_by_time(tmp_path: Path) -> None:
    early, late = pod("early", created=START), pod("late", created=START + 600)
    write(
        tmp_path, [(START, [node("n1")], [early]), (START + 200, [node("n1")], []), (START + 600, [node("n1")], [late])]
    )
    found = read_recording(tmp_path, last_seconds=120.0)
    assert (found.start, found.end) == (START + 480, START + 600)
    assert found.pods == ()
    assert len(read_recording(tmp_path, end=START + 190).pods) == 1
    with pytest.raises(RecordingError, match="no data for this time"):
        read_recording(tmp_path, end=START - 60)


def test_recorder_writes_nothing_while_facts_are_unknown_and_survives_write_errors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    times, away = [START], Unknown("the API server is away")
    known = ClusterState(nodes=Observed((node("n1"),), START), pods=Observed((pod("web", node="n1"),), START))
    current = [ClusterState(nodes=away, pods=away)]
    blocked = tmp_path / "recording"
    recorder = ClusterRecorder(lambda: current[0], blocked, UNPACED, Clock(wall=lambda: times[0]))
    recorder.record(None)
    recorder.record(30 * 24 * HOUR)
    assert not blocked.exists(), "nothing is known, so nothing is written"
    blocked.write_text("a file where the folder should be")
    current[0] = known
    recorder.record(30 * 24 * HOUR)
    current[0] = ClusterState(nodes=away, pods=away)
    recorder.record(30 * 24 * HOUR)
    current[0] = known
    recorder.record(30 * 24 * HOUR)
    assert caplog.messages == ["the cluster is not recorded: make room, or correct `state`"]
    blocked.unlink()
    recorder.record(30 * 24 * HOUR)
    assert caplog.messages[1:] == ["the cluster is recorded again"]
    times[0] = START + 60
    current[0] = ClusterState(
        nodes=Observed(known.nodes.value, START + 60) if isinstance(known.nodes, Observed) else known.nodes,
        pods=Observed((), START + 60),
    )
    recorder.record(30 * 24 * HOUR)
    recorder.close()
    (one,) = read_recording(blocked).pods
    assert one.gone == START + 60


def test_recorder_can_be_closed_while_it_records(tmp_path: Path) -> None:
    known = ClusterState(nodes=Observed((node("n1"),), START), pods=Observed((), START))
    recorder = ClusterRecorder(lambda: known, tmp_path, UNPACED, Clock(wall=lambda: START))
    threads = [threading.Thread(target=recorder.record, args=(24 * HOUR,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    recorder.close()
    for thread in threads:
        thread.join()
    recorder.close()
    assert files_of(tmp_path)


def test_a_watch_that_hangs_beside_another_leaves_a_gap(tmp_path: Path) -> None:
    times = [START]
    nodes, pods = (node("n1"),), (pod("web", node="n1"),)
    confirmed = [START]

    def known() -> ClusterState:
        return ClusterState(nodes=Observed(nodes, times[0]), pods=Observed(pods, confirmed[0]))

    recorder = ClusterRecorder(known, tmp_path, UNPACED, Clock(wall=lambda: times[0]))
    for _ in range(60):
        recorder.record(24 * HOUR)
        times[0] += 10
    confirmed[0] = times[0]
    recorder.record(24 * HOUR)
    recorder.close()
    assert read_recording(tmp_path).gaps == (RecordingGap(START, START + 600),)
