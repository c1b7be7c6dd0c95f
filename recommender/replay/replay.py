"""A whole replay: runs every policy on the recorded past, and reaches a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adapter.foundation.reports.counts import count_of
from recommender.recording.recording import Recording, RecordingError
from recommender.replay.assumptions import Assumptions, assumption_notes, outlook_of, spot_notes
from recommender.replay.cluster.events import events_of
from recommender.replay.cluster.replay_facts import Scene, scene_of
from recommender.replay.policies import policies_of
from recommender.replay.policy_outcome import DAY_SECONDS, Account, PolicyOutcome
from recommender.replay.reports.forecast_worth import forecast_worth
from recommender.replay.reports.report import ReplayReport
from recommender.replay.reports.verdict import MOST_UNKNOWN_RATIO, verdict_of
from recommender.replay.simulation.simulation import outcomes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
    from recommender.kinds.predictive.arrays import FloatArray

RECORDED = "recorded"
_USUAL = Assumptions()
_LIMIT_OF_THE_MODEL = "PodDisruptionBudgets are not recorded: a replay evicts where a budget might not let it."


def replay_report(
    recording: Recording,
    settings: ClusterSizeSettings,
    startup_seconds: float | None = None,
    show: Callable[[float, str], None] = lambda _share, _what: None,
    assumptions: Assumptions = _USUAL,
) -> ReplayReport:
    """Return the results of all policies; `show` gets the share done and what is being done. Raises RecordingError."""
    if recording.seconds <= 0 or not recording.pods:
        what = "time" if recording.seconds <= 0 else "pod"
        raise RecordingError(f"{recording.source}: it covers no {what}: record for longer")
    scene = scene_of(recording, settings, startup_seconds)
    past = events_of(scene)
    groups = sum(not group.problem for group in scene.groups.groups)
    has_prices = len(scene.prices) == len(scene.groups.groups)
    outlook = outlook_of(scene, assumptions)
    wanted = policies_of(settings, groups, has_prices=has_prices, outlook=outlook)
    outcomes: list[PolicyOutcome] = []
    running = outcomes_of(scene, wanted, past)
    for place, policy in enumerate(wanted):
        show(place / len(wanted), f"replaying {policy.name}")
        outcomes.append(next(running))
    unknown = sum(gap.end - gap.start for gap in recording.gaps) / recording.seconds
    known_days = _known_days(recording)
    verdict, worth = verdict_of(outcomes, known_days, unknown), forecast_worth(outcomes, known_days, unknown)
    recorded = _recorded_outcome(scene)
    return ReplayReport(
        recording.source,
        recording.start,
        recording.end,
        recorded,
        tuple(outcomes),
        verdict,
        worth,
        (
            *(() if worth is None else (str(worth),)),
            *_unplaced_notes(recorded, outcomes[0]),
            *spot_notes(outcomes[0]),
            *scene.notes,
            *_gap_notes(recording),
            *assumption_notes(scene, settings, outlook),
            _LIMIT_OF_THE_MODEL,
        ),
        tuple(recording.gaps),
    )


def _known_days(recording: Recording) -> FloatArray:
    """Return 1 for each whole day that was recorded without a relevant gap, and 0 for other days."""
    days = max(1, int(np.ceil(recording.seconds / DAY_SECONDS)))
    known = np.ones(days)
    for day in range(days):
        begin = recording.start + day * DAY_SECONDS
        end = begin + DAY_SECONDS
        unknown = sum(max(0.0, min(end, gap.end) - max(begin, gap.start)) for gap in recording.gaps)
        unknown += max(0.0, end - recording.end)
        if unknown > MOST_UNKNOWN_RATIO * DAY_SECONDS:
            known[day] = 0
    return known


def _unplaced_notes(recorded: PolicyOutcome, configured: PolicyOutcome) -> Iterator[str]:
    """Yield a note if the configured groups cannot hold the recorded pods: costs and savings are then too small."""
    if configured.unplaced > recorded.unplaced:
        has = "has" if configured.unplaced == 1 else "have"
        yield (
            f"{count_of(configured.unplaced, 'pod')} {has} no node at the end by the configured policy, and "
            f"{recorded.unplaced or 'none'} in the recording: compare the `max` of the node groups with the recorded "
            "nodes, since costs are those of the pods that have a node."
        )


def _gap_notes(recording: Recording) -> Iterator[str]:
    if recording.gaps:
        longest = max(gap.end - gap.start for gap in recording.gaps)
        yield (
            f"{count_of(len(recording.gaps), 'gap')} without any sample, the longest of {longest / 60:.0f} min: pods "
            "are taken to stay meanwhile, and days with more than a tenth unknown are not judged."
        )


def _recorded_outcome(scene: Scene) -> PolicyOutcome:
    """Return what really happened to the recorded pods and nodes."""
    recording = scene.recording
    account = Account(recording.start, recording.end, scene.prices)
    moments = []
    for number, node in enumerate(recording.nodes):
        group = scene.node_kinds[scene.kind_of_node[node.node.name]].group
        moments.append((max(node.came, recording.start), number, group, True))
        if node.gone is not None and node.gone < recording.end:
            moments.append((node.gone, number, group, False))
    for time, number, group, is_coming in sorted(moments):
        if is_coming:
            account.node_came(number, group, time)
        else:
            account.node_went(number, time)
    unplaced = 0
    for pod in recording.pods:
        if not scene.replayed[pod.kind] or (pod.gone is not None and pod.gone <= recording.start):
            continue
        if pod.bound is None or pod.bound > recording.start:
            until = min(one for one in (pod.bound, pod.gone, recording.end) if one is not None)
            account.record_wait(max(pod.created, recording.start), until)
            unplaced += pod.bound is None and pod.gone is None
    return account.outcome(RECORDED, unplaced)
