"""The report as text: first the verdict in a sentence, then a line for each policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.foundation.reports.counts import count_of
from adapter.foundation.reports.terminal_escaping import printable
from recommender.backtest.replayed_policies import AUTO, HEADROOM
from recommender.backtest.report import Actuator, BacktestReport, PolicyResult
from recommender.decisions.texts.columns import align_columns
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.predictive.current_forecast import duration_text
from recommender.kinds.predictive.simulation.frontier import ONLY_THE_POLICY

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
_AS_FACTOR: Final = 2.0
"""The ratio from which a multiple is easier to read than a percentage."""
_LEAST_SEASONS: Final = 2
_BOLD: Final = "\x1b[1m{}\x1b[0m"


def report_text(report: BacktestReport, *, colour: bool = False) -> str:
    """Return the report as text for a terminal: a sentence, the facts, a table of the policies, and a legend."""
    bold = _BOLD if colour else "{}"
    lines = [bold.format(sentence(report)), *_shortness(report), "", *_facts(report), ""]
    rows = [_HEADER, *(_row(policy, report) for policy in report.policies)]
    for row, line in zip(rows, align_columns(rows), strict=True):
        lines.append(bold.format(line) if row[0] in {report.verdict.best, AUTO} else line)
    lines += ["", *_regret(report), *_budgets(report), *_legend(report)]
    return "\n".join(line.rstrip() for line in lines)


def _shortness(report: BacktestReport) -> Iterator[str]:
    """Yield a warning if the load covers too little time for the verdict to mean much."""
    seconds, least = report.trace.end - report.trace.start, _LEAST_SEASONS * report.trace.season_seconds
    if seconds < least:
        yield (
            f"The load covers {duration_text(seconds)} only, and most models need {duration_text(least)}: repeat this "
            "with more."
        )


def sentence(report: BacktestReport) -> str:
    """Return the verdict as a sentence."""
    auto, verdict = report.policy(AUTO), report.verdict
    tau, theta = auto.comparison.tau_under_versus_headroom, auto.comparison.theta_under_versus_headroom
    use = f"Use model: auto, which ran {verdict.use.removeprefix('model:')} most"
    if verdict.use == HEADROOM:
        # The models that led for the rest of the time may have paid for themselves all the same.
        use = "Use plain headroom: no model proved better for most of this load"
        if _is_better(tau) and _is_better(theta):
            use = "Use model: auto, which was plain headroom for most of this load"
    elif _is_worse(tau, theta):
        # A short load may end before a change of the cost has paid for itself.
        use = f"Use plain headroom: {AUTO}, which ran {verdict.use.removeprefix('model:')} most, was short more"
    cost = f"{AUTO} costs as much as {_percent(auto.comparison.cost_as_headroom_ratio)} headroom"
    if verdict.cost_above_load_ratio is not None:
        cost += f", {_percent(verdict.cost_above_load_ratio)} above the load itself"
    if tau is None and theta is None:
        return f"{use}. {cost}, and neither is ever short."
    if ONLY_THE_POLICY in (tau, theta):
        return f"{use}. {cost}, and it is short in {_percent(_share(auto))} of the steps, where that headroom never is."
    if tau == 0 == theta:
        return f"{use}. {cost}, and it is never short, unlike that headroom."
    if _is_equal(tau) and _is_equal(theta):
        return f"{use}. {cost}, and is short as often and by as much as that headroom."
    against = f"{_comparison_text(tau, 'often')}, and by {_comparison_text(theta, '')}"
    return f"{use}. {cost}; compared with that headroom, it runs short {against}."


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


def _regret(report: BacktestReport) -> Iterator[str]:
    regret = report.verdict.regret
    if regret is not None:
        yield (
            f"In hindsight, at the cost of auto, {regret.best} alone has {regret.best_shortage:.2f} times the shortage "
            f"of headroom: the regret of auto is {regret.regret:+.2f}."
        )


def _budgets(report: BacktestReport) -> Iterator[str]:
    """Yield lines that show how often auto is short at each permitted cost, so that a `budget` can be chosen."""
    if report.budgets:
        shown = (
            f"{_percent(each.budget_ratio)}: {each.measures.tau_under_percent:.3g}% "
            f"({each.headroom_tau_under_percent:.3g}%)"
            for each in report.budgets
        )
        yield f"Short by `budget`, in brackets headroom of the same cost: {', '.join(shown)}."


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
        f"{measures.tau_under_percent:.3g}%",
        _ratio(tau),
        _ratio(theta),
        f"{100 * measures.lost_load_ratio:.3g}%",
        f"{measures.changes:,}",
    )


def _legend(report: BacktestReport) -> Iterator[str]:
    yield "SHORT: share of the judged steps in which fewer replicas served than the load needed."
    yield (
        "VS HEADROOM: how often and how much it is short, divided by the shortage of plain headroom at equal "
        "replica-hours: below 1 the policy is better; - if neither is short, `only` if headroom never is."
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
                f"{policy.name}: {count_of(policy.fits.failed, 'fit')} failed, and the last good parameters stayed in "
                f"use; the last failure: {policy.fits.last_failure}"
            )
    yield from map(printable, report.notes)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g}%"


def _comparison_text(ratio: float | None, adverb: str) -> str:
    """Return how often, or by how much, a policy is short: `72% less often`, `69% less`, `2.5 times as much`."""
    if _is_equal(ratio) or ratio is None:
        return f"just as {adverb or 'much'}"
    if ratio >= _AS_FACTOR:
        return f"{ratio:.1f} times as {adverb or 'much'}"
    percent = 100 * abs(1.0 - ratio)
    # 99.6% must not be shown as all.
    shown = f"{percent:.3g}" if percent > 99 and ratio < 1.0 else f"{percent:.0f}"
    return f"{shown}% {'less' if ratio < 1.0 else 'more'} {adverb}".rstrip()


def _is_better(ratio: float | None) -> bool:
    return ratio is not None and ratio < 1 and not _is_equal(ratio)


def _is_worse(*ratios: float | None) -> bool:
    """Return whether a policy is short more than headroom, often or by much, and in neither way less."""
    return not any(_is_better(ratio) for ratio in ratios) and not all(_is_equal(ratio) for ratio in ratios)


def _is_equal(ratio: float | None) -> bool:
    return ratio is None or f"{ratio:.2f}" == "1.00"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return "only" if ratio == ONLY_THE_POLICY else f"{ratio:.2f}"
