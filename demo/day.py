"""One day: watches the fleet, scales it by the HPA loop, and writes the verdict."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from prometheus_api_client import PrometheusConnect

from demo.hpa_controller import HpaController
from demo.machine.files import replace_file
from demo.moments import moment_of
from demo.plot import plot_day
from demo.stage import stage
from demo.verdict import judge, sentence, summary
from demo.verify import check
from demo.view import view

if TYPE_CHECKING:
    from pathlib import Path

    from demo.moments import Moment
    from demo.records import Sync
    from demo.settings import Settings
    from demo.stage import Stage
    from demo.verify import Findings
    from demo.view import View

LOOK_SECONDS = 0.2


class FleetLostError(Exception):
    """The fleet's process ended before its day was over."""


def run_day(folder: Path, out: Path, settings: Settings) -> bool:
    """Run the demo in `folder`, write `summary.json` and `demo.png` to `out`; return whether the load was held."""
    with view() as screen, stage(folder, settings, screen.say) as running:
        controller = HpaController(running.api, settings.target)
        if settings.hpa:
            controller.wait_for_metrics(running.fleet)
        with running.start_clients():
            moments, syncs = _watch(running, controller, settings, screen)
            screen.say("checking every value and decision against Prometheus …")
            findings = check(syncs, settings.target, PrometheusConnect(url=running.prometheus_url))
            held, told = _conclude(moments, syncs, findings, settings, out)
            screen.say(f"\n{told}\n{out / 'demo.png'}, {out / 'summary.json'}")
            if settings.hold:
                _hold(running, screen)
    return held


def _conclude(
    moments: list[Moment], syncs: list[Sync], findings: Findings, settings: Settings, out: Path
) -> tuple[bool, str]:
    """Write the summary and the plot; return whether the load was held, and the sentence that says so."""
    verdict = judge(moments, syncs, findings, settings)
    told = sentence(verdict, moments, findings)
    report = summary(verdict, moments, syncs, findings, settings)
    replace_file(out / "summary.json", json.dumps(report, indent=2) + "\n")
    plot_day(moments, target=settings.target.connections_per_pod, verdict=told, path=out / "demo.png")
    return verdict.held, told


def _watch(
    running: Stage, controller: HpaController, settings: Settings, screen: View
) -> tuple[list[Moment], list[Sync]]:
    """Follow the day to its end, scaling on the way."""
    moments: list[Moment] = []
    syncs: list[Sync] = []
    replicas = settings.target.min_replicas
    next_sync = started = time.monotonic()
    while not (moments and moments[-1].over):
        if not running.fleet.alive:
            raise FleetLostError("the fleet has ended: see fleet.log in the demo's folder")
        now = time.monotonic()
        if settings.hpa and now >= next_sync:
            next_sync += settings.sync_seconds
            sync = controller.sync(now - started, replicas, running.fleet.state)
            syncs.append(sync)
            if sync.desired != replicas:
                replicas = sync.desired
                running.fleet.scale(replicas)
        moment = moment_of(running.fleet.state)
        if moment is not None:
            moments.append(moment)
            screen.show(moments, settings.seconds, told_of(syncs))
        time.sleep(LOOK_SECONDS)
    return moments, syncs


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


def _hold(running: Stage, screen: View) -> None:
    api = running.api
    screen.say(
        "\nEverything keeps running; Ctrl-C ends it. Ask the adapter as the API server does:\n"
        f"  curl --cacert {api.ca_file} --cert {api.client.certificate_file} --key {api.client.key_file} \\\n"
        "    -H 'X-Remote-User: me' \\\n"
        f"    {api.url}/apis/custom.metrics.k8s.io/v1beta2/namespaces/demo/pods/*/websocket_connections\n"
        f"Prometheus: {running.prometheus_url}   own metrics: {api.plain_url}/metrics"
    )
    while running.fleet.alive:
        time.sleep(1.0)
