"""One day: watches both fleets, scales each by its HPA loop, and writes the verdict."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prometheus_api_client import PrometheusConnect

from demo.forecasts import NO_CHOICE
from demo.hpa_controller import HpaController
from demo.machine.files import replace_file
from demo.moments import moment_of
from demo.plot import plot_day
from demo.settings import CAUTIOUS_CONNECTIONS_PER_POD
from demo.stage import stage
from demo.verdict import FleetDay, judge_both, sentence, summary
from demo.verify import check
from demo.view import FleetView, view

if TYPE_CHECKING:
    from pathlib import Path

    from demo.forecasts import Choice
    from demo.interruption import Interruption
    from demo.moments import Moment
    from demo.records import Sync, Target
    from demo.settings import Settings
    from demo.stage import Api, Stage, StagedFleet
    from demo.view import View

LOOK_SECONDS = 0.2
FRESH_SECONDS = 3.0
"""Within this age of a value, the load has not changed much; the adapter queries new values every second or two."""


LONGEST_START_ROUNDS = 4
"""A pod that takes more rounds to start is late, as on a busy machine, and the day waits for it."""


class FleetLostError(Exception):
    """The process of a fleet ended before its day was over."""


def run_day(folder: Path, out: Path, settings: Settings, interruption: Interruption) -> bool:
    """Run the demo in `folder`, write `summary.json` and `demo.png` to `out`; return whether the load was held.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    with view() as screen, stage(folder, settings, screen.say, interruption.sleep) as running:
        choice = _await_choice(running, settings, screen, interruption) if settings.hpa else NO_CHOICE
        watched = [_watched(fleet, choice, running.api) for fleet in running.fleets]
        if settings.hpa:
            for each in watched:
                each.controller.wait_for_metrics(each.fleet.feed, interruption.sleep)
            _sleep_until(running.calendar.next_beginning(time.time()), interruption)
        _watch(watched, settings, screen, interruption)
        screen.say("checking every value and decision against Prometheus …")
        witness = PrometheusConnect(url=running.prometheus_url)
        reactive, predictive = (each.day(witness) for each in watched)
        held, told = _conclude((reactive, predictive), choice, settings, out)
        screen.say(f"\n{told}\n{out / 'demo.png'}, {out / 'summary.json'}")
        if settings.hold:
            _hold(running, screen, interruption)
    return held


def _await_choice(running: Stage, settings: Settings, screen: View, interruption: Interruption) -> Choice:
    """Return the model that the recommender chose from the days before; plain headroom if it takes too long."""
    screen.say("waiting until the recommender has tried its models on the days before …")
    until = time.monotonic() + settings.choice_seconds
    while not (choice := running.recommender.choice()).is_made and time.monotonic() < until:
        interruption.sleep(LOOK_SECONDS)
    screen.say(f"chosen      {choice.reason}")
    return choice


def _watched(fleet: StagedFleet, choice: Choice, api: Api) -> WatchedFleet:
    """Return a fleet with its HPA. The HPA of the reactive fleet adds the headroom that costs as much as the forecasts.

    Without a choice, both have as much headroom as fleets need on a machine that is too busy to choose.
    """
    target = fleet.target
    if not choice.is_made:
        target = replace(target, connections_per_pod=min(target.connections_per_pod, CAUTIOUS_CONNECTIONS_PER_POD))
    elif not target.follows_forecast:
        target = replace(target, connections_per_pod=int(target.connections_per_pod / (1 + choice.headroom_ratio)))
    return WatchedFleet(fleet, target, HpaController(api, target))


def _sleep_until(time_seconds: float, interruption: Interruption) -> None:
    while (left := time_seconds - time.time()) > 0:
        interruption.sleep(min(left, LOOK_SECONDS))


@dataclass(slots=True)
class WatchedFleet:
    """One fleet during its day."""

    fleet: StagedFleet
    target: Target
    """The HPA of the fleet."""
    controller: HpaController
    moments: list[Moment] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    took_seconds: float = 0.0
    """The time that the day has taken so far, by the clock of the machine."""

    @property
    def is_over(self) -> bool:
        """Whether the day has ended."""
        return bool(self.moments) and self.moments[-1].over

    @property
    def is_up_to_date(self) -> bool:
        """Whether the last decision rests on fresh values, and no pod is late; a missing value is not waited for."""
        total = self.syncs[-1].total if self.syncs else None
        pending = [set(sync.pending) for sync in self.syncs[-LONGEST_START_ROUNDS:]]
        if len(pending) == LONGEST_START_ROUNDS and set.intersection(*pending):
            return False
        return total is None or total.received - total.stamped <= FRESH_SECONDS

    def sync(self, seconds: float) -> None:
        """Let the HPA decide once, and scale the fleet to its decision."""
        replicas = self.syncs[-1].desired if self.syncs else self.target.min_replicas
        sync = self.controller.sync(seconds, replicas, self.fleet.feed.state)
        self.syncs.append(sync)
        if sync.desired != replicas:
            self.fleet.feed.scale(sync.desired)

    def look(self, seconds: float) -> None:
        """Record the current time, which is `seconds` after the beginning by the clock of the machine."""
        if not self.fleet.feed.alive:
            raise FleetLostError(f"a fleet has ended: see fleet-{self.target.namespace}.log in the demo's folder")
        moment = moment_of(self.fleet.feed.state)
        if moment is not None and not self.is_over:
            self.moments.append(moment)
            self.took_seconds = seconds

    def day(self, witness: PrometheusConnect) -> FleetDay:
        """Return the fleet's day, checked against Prometheus."""
        findings = check(self.syncs, self.target, witness)
        return FleetDay(self.target, self.moments, self.syncs, findings, self.took_seconds)


def _conclude(days: tuple[FleetDay, FleetDay], choice: Choice, settings: Settings, out: Path) -> tuple[bool, str]:
    """Write the summary and the plot; return whether the load was held, and the lines that say so."""
    verdicts = judge_both(*days, choice, settings)
    told = sentence(days, verdicts)
    replace_file(out / "summary.json", json.dumps(summary(days, verdicts, choice, settings), indent=2) + "\n")
    plot_day(days, verdicts, choice, path=out / "demo.png")
    return all(verdict.held for verdict in verdicts), told


def _watch(watched: list[WatchedFleet], settings: Settings, screen: View, interruption: Interruption) -> None:
    """Follow the day to its end and scale the fleets. The day advances with each round of decisions on fresh values."""
    next_sync = started = time.monotonic()
    for each in watched:
        each.fleet.feed.begin()
    while not all(each.is_over for each in watched):
        for each in watched:
            each.look(time.monotonic() - started)
        now = time.monotonic()
        if now >= next_sync:
            # A round that was missed is not made up for: the next one would see the same values.
            next_sync = max(next_sync, now - settings.sync_seconds / 2) + settings.sync_seconds
            for each in watched:
                if settings.hpa and not each.is_over:
                    each.sync(now - started)
            if all(each.is_up_to_date for each in watched):
                for each in watched:
                    each.fleet.feed.go_on()
        if all(each.moments for each in watched):
            screen.show([_shown(each) for each in watched], settings.seconds)
        interruption.sleep(LOOK_SECONDS)


def _shown(each: WatchedFleet) -> FleetView:
    name = "predictive" if each.target.follows_forecast else "reactive"
    return FleetView(name, each.moments, told_of(each.syncs))


def told_of(syncs: list[Sync]) -> str:
    """Return the last decision in a few words."""
    if not syncs:
        return "no HPA"
    last = syncs[-1]
    if last.errors:
        return last.errors[0]
    return (
        f"{last.replicas} -> {last.desired} ({last.reason})"
        if last.desired != last.replicas
        else f"stays {last.desired}"
    )


def _hold(running: Stage, screen: View, interruption: Interruption) -> None:
    api: Api = running.api
    screen.say(
        "\nEverything keeps running; Ctrl-C ends it. Ask the adapter as the API server does:\n"
        f"  curl --cacert {api.ca_file} --cert {api.client.certificate_file} --key {api.client.key_file} \\\n"
        "    -H 'X-Remote-User: me' \\\n"
        f"    {api.url}/apis/custom.metrics.k8s.io/v1beta2/namespaces/demo/pods/*/websocket_connections\n"
        f"Prometheus: {running.prometheus_url}   own metrics: {api.plain_url}/metrics"
    )
    while all(fleet.feed.alive for fleet in running.fleets):
        interruption.sleep(1.0)
