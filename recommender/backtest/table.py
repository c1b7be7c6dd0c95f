"""The report as text: the verdict in a sentence first, then a line for each policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.reports.terminal import printable
from recommender.backtest.policies import AUTO, HEADROOM
from recommender.backtest.report import Actuator
from recommender.decisions.times import rfc3339
from recommender.predictive.current import duration_text
from recommender.predictive.simulation.frontier import ONLY_THE_POLICY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recommender.backtest.report import BacktestReport, PolicyResult

_HEADER: Final = (
    "POLICY",
    "COSTS AS MUCH AS",
    "REPLICA-HOURS",
    "SHORT",
    "VS HEADROOM: TIME",
    "SIZE",
    "LOST LOAD",
    "CHANGES",
)
_GAP: Final = "  "
_BOLD: Final = "\x1b[1m{}\x1b[0m"


def report_text(report: BacktestReport, *, colour: bool = False) -> str:
    """Return the text."""
    bold = _BOLD if colour else "{}"
    lines = [bold.format(sentence(report)), "", *_facts(report), ""]
    rows = [_HEADER, *(_row(policy, report) for policy in report.policies)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        cells = [cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in _sized(row, widths)]
        line = _GAP.join(cells).rstrip()
        lines.append(bold.format(line) if row[0] in {report.verdict.best, AUTO} else line)
    lines += ["", *_legend(report)]
    return "\n".join(line.rstrip() for line in lines)


def sentence(report: BacktestReport) -> str:
    """Return the verdict for people."""
    auto, verdict = report.policy(AUTO), report.verdict
    use = f"Use model: auto, which ran {verdict.use.removeprefix('model:')} most"
    if verdict.use == HEADROOM:
        use = "Use plain headroom: no model proved better for most of this load"
    cost = f"{AUTO} costs as much as {_percent(auto.comparison.cost_as_headroom_ratio)} headroom"
    tau, theta = auto.comparison.tau_under_versus_headroom, auto.comparison.theta_under_versus_headroom
    if tau is None and theta is None:
        return f"{use}. {cost}, and neither is ever short."
    if ONLY_THE_POLICY in (tau, theta):
        return f"{use}. {cost}, and it is short in {_percent(_share(auto))} of the steps, where that headroom never is."
    if _times(tau) == _times(theta) == _times(1.0):
        return f"{use}. {cost}, and is short as often and by as much as that headroom."
    against = f"{_times(tau)} as often, and by {_times(theta)} as much"
    return f"{use}. {cost}; compared with that headroom, it is short {against}."


def _share(policy: PolicyResult) -> float:
    return policy.measures.tau_under_percent / 100


def _facts(report: BacktestReport) -> Iterator[str]:
    trace, fleet = report.trace, report.fleet_settings
    yield printable(
        f"{trace.source}: {_count(trace.samples, 'sample')}, {rfc3339(trace.start)} to {rfc3339(trace.end)}, "
        f"steps of {trace.step_seconds:g} s"
    )
    yield (
        f"judged: {_count(trace.judged_steps, 'step')} after a warm-up of {duration_text(trace.warm_up_seconds)}; "
        f"a pod starts in {fleet.startup_seconds:g} s and serves {fleet.load_per_replica:,.6g}; "
        f"actuator {report.actuator.value}"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _row(policy: PolicyResult, report: BacktestReport) -> tuple[str, ...]:
    measures, versus = policy.measures, policy.comparison
    tau, theta = versus.tau_under_versus_headroom, versus.theta_under_versus_headroom
    below = "below " if measures.replica_hours < report.frontier[0].measures.replica_hours else ""
    return (
        policy.name,
        f"{below}{_percent(versus.cost_as_headroom_ratio)} headroom",
        f"{measures.replica_hours:,.1f}",
        f"{measures.tau_under_percent:.3g} %",
        _ratio(tau),
        _ratio(theta),
        f"{100 * measures.lost_load_ratio:.3g} %",
        f"{measures.changes:,}",
    )


def _sized(row: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[int, tuple[str, int]]]:
    return enumerate(zip(row, widths, strict=True))


def _legend(report: BacktestReport) -> Iterator[str]:
    yield "SHORT: share of the judged steps in which fewer replicas served than the load needed."
    yield (
        "VS HEADROOM: how often and how much it is short, divided by the same of plain headroom at equal "
        "replica-hours: below 1 the policy is better; - where neither is short, only where headroom never is."
    )
    if report.actuator is Actuator.HPA:
        yield "Policies and headroom alike act through an HPA with the default behaviour."
    for policy in report.policies:
        found = policy.connections
        if found is not None:
            yield (
                f"{policy.name}: {found.refused:,.0f} of {found.attempted:,.0f} connections were refused "
                f"({_percent(found.refused_ratio)}), {found.cut_off:,.0f} cut off"
            )
        if policy.fits.failed:
            yield printable(
                f"{policy.name}: {policy.fits.failed} fits failed, and the last good parameters stayed in use; "
                f"the last failure: {policy.fits.last_failure}"
            )
    yield from map(printable, report.notes)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"


def _times(ratio: float | None) -> str:
    return "just" if ratio is None else f"{ratio:.2f} times"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return "only" if ratio == ONLY_THE_POLICY else f"{ratio:.2f}"
