"""One day: watches both fleets, scales each by its HPA loop, and writes the verdict."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_api_client import PrometheusConnect

from demo.hpa_controller import HpaController
from demo.machine.files import replace_file
from demo.moments import moment_of
from demo.plot import plot_day
from demo.stage import stage
from demo.verdict import FleetDay, judge_both, sentence, summary
from demo.verify import check
from demo.view import FleetView, view

if TYPE_CHECKING:
    from pathlib import Path

    from demo.interruption import Interruption
    from demo.moments import Moment
    from demo.records import Sync, Target
    from demo.settings import Settings
    from demo.stage import Api, Stage, StagedFleet
    from demo.view import View

LOOK_SECONDS = 0.2
FRESH_SECONDS = 4.0
"""Age of a value of which the load has not changed much since; the adapter asks for new ones every second or two."""


class FleetLostError(Exception):
    """The process of a fleet ended before its day was over."""


def run_day(folder: Path, out: Path, settings: Settings, interruption: Interruption) -> bool:
    """Run the demo in `folder`, write `summary.json` and `demo.png` to `out`; return whether the load was held.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    with view() as screen, stage(folder, settings, screen.say) as running:
        watched = [WatchedFleet(fleet, HpaController(running.api, fleet.target)) for fleet in running.fleets]
        if settings.hpa:
            for each in watched:
                each.controller.wait_for_metrics(each.fleet.feed)
        with ExitStack() as clients:
            for each in watched:
                clients.enter_context(each.fleet.start_clients())
            _watch(watched, settings, screen, interruption)
            screen.say("checking every value and decision against Prometheus …")
            witness = PrometheusConnect(url=running.prometheus_url)
            reactive, predictive = (each.day(witness) for each in watched)
            held, told = _conclude((reactive, predictive), settings, out)
            screen.say(f"\n{told}\n{out / 'demo.png'}, {out / 'summary.json'}")
            if settings.hold:
                _hold(running, screen, interruption)
    return held


@dataclass(slots=True)
class WatchedFleet:
    """One fleet while its day goes on."""

    fleet: StagedFleet
    controller: HpaController
    moments: list[Moment] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)

    @property
    def target(self) -> Target:
        """The HPA of the fleet."""
        return self.fleet.target

    @property
    def is_over(self) -> bool:
        """Whether the day has ended."""
        return bool(self.moments) and self.moments[-1].over

    @property
    def is_up_to_date(self) -> bool:
        """Whether the last decision rests on fresh values; one that had none is not waited for."""
        total = self.syncs[-1].total if self.syncs else None
        return total is None or total.received - total.stamped <= FRESH_SECONDS

    def sync(self, seconds: float) -> None:
        """Let the HPA decide once, and follow it."""
        replicas = self.syncs[-1].desired if self.syncs else self.target.min_replicas
        sync = self.controller.sync(seconds, replicas, self.fleet.feed.state)
        self.syncs.append(sync)
        if sync.desired != replicas:
            self.fleet.feed.scale(sync.desired)

    def look(self) -> None:
        """Note the present moment."""
        if not self.fleet.feed.alive:
            raise FleetLostError(f"a fleet has ended: see fleet-{self.target.namespace}.log in the demo's folder")
        moment = moment_of(self.fleet.feed.state)
        if moment is not None and not self.is_over:
            self.moments.append(moment)

    def day(self, witness: PrometheusConnect) -> FleetDay:
        """Return what the fleet went through, checked against Prometheus."""
        return FleetDay(self.target, self.moments, self.syncs, check(self.syncs, self.target, witness))


def _conclude(days: tuple[FleetDay, FleetDay], settings: Settings, out: Path) -> tuple[bool, str]:
    """Write the summary and the plot; return whether the load was held, and the lines that say so."""
    verdicts = judge_both(*days, settings)
    told = sentence(days, verdicts)
    replace_file(out / "summary.json", json.dumps(summary(days, verdicts, settings), indent=2) + "\n")
    plot_day(days, verdicts, path=out / "demo.png")
    return all(verdict.held for verdict in verdicts), told


def _watch(watched: list[WatchedFleet], settings: Settings, screen: View, interruption: Interruption) -> None:
    """Follow the day to its end, scaling on the way. The day goes on with each round of decisions on fresh values."""
    next_sync = started = time.monotonic()
    while not all(each.is_over for each in watched):
        for each in watched:
            each.look()
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
