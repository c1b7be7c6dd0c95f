"""A backtest of sizes as a document for programs, and as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.documents import json_text
from recommender.decisions.texts.columns import columns, wrap_lines
from recommender.decisions.texts.times import rfc3339
from recommender.kinds.resources.backtest.judging import FEWEST_HISTORY_DAYS, JUDGED, JudgedContainer, RequestFit
from recommender.kinds.resources.histograms import DAY_SECONDS
from recommender.kinds.resources.workloads import CPU, MEMORY, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recommender.commands.sizes.size_backtest import SizeBacktest

_HEAD: Final = ("WORKLOAD", "CONTAINER", "", "DAYS", *(name.upper() for name in JUDGED), "KILLS")
_LEGEND: Final = (
    "Under each policy: share of time over the request, and how many times what is used it reserves; of memory, also "
    "days of pods with time over it, and of the kills those that it would have avoided."
)


def as_backtest_json(found: SizeBacktest) -> str:
    """Return the document, indented."""
    window, settings = found.window, found.settings
    document = {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "SizeBacktest",
        "time": rfc3339(window.end),
        "window": {"start": rfc3339(window.start), "end": rfc3339(window.end), "last_seconds": window.seconds},
        "settings": {
            "percentile": None if settings.percentile is None else round(settings.percentile * 100, 6),
            "margin_ratio": settings.margin_ratio,
        },
        "notes": list(found.notes),
        "totals": {resource: _totals(found.containers, resource) for resource in RESOURCES},
        "items": [_item(each) for each in found.containers],
    }
    return json_text(document)


def as_backtest_table(found: SizeBacktest, width: int | None) -> str:
    """Return the table; with `width` None, lines may have any length."""
    return "\n".join(_lines(found, width))


def _lines(found: SizeBacktest, width: int | None) -> Iterator[str]:
    judged = [each for each in found.containers if each.days]
    days = found.window.seconds / DAY_SECONDS
    yield from wrap_lines(
        f"{len(judged)} of {len(found.containers)} containers judged on days of the {days:.3g} days until "
        f"{rfc3339(found.window.end)}, each from the days before it.",
        width,
        "",
    )
    yield ""
    if judged:
        rows = [_total_row(judged, resource) for resource in RESOURCES]
        rows += [row for each in judged for row in _rows(each)]
        yield from (line.rstrip() for line in columns([_HEAD, *rows], width))
        yield ""
        yield from wrap_lines(_LEGEND, width, "")
    for each in found.containers:
        if not each.days:
            yield from wrap_lines(f"{each.name.workload} {each.name.container}: {_too_little(each)}", width, "")
    for note in found.notes:
        yield from wrap_lines(note, width, "")


def _rows(each: JudgedContainer) -> Iterator[tuple[str, ...]]:
    names = {CPU: (str(each.name.workload), each.name.container, "cpu", str(each.days)), MEMORY: ("", "", "mem", "")}
    for resource in RESOURCES:
        fits = each.fits[resource]
        kills = each.oom_kills if resource == MEMORY else 0
        cells = (_cell(fits.get(policy), resource, kills) for policy in JUDGED)
        yield (*names[resource], *cells, str(kills) if resource == MEMORY else "")


def _cell(fit: RequestFit | None, resource: str, kills: int) -> str:
    if fit is None:
        return "-"
    text = f"{fit.over_ratio * 100:.3g}% {_times(fit)}"
    if resource == MEMORY and fit.days_over:
        text += f" {fit.days_over}d"
    return f"{text} -{fit.kills_avoided}" if resource == MEMORY and kills else text


def _times(fit: RequestFit) -> str:
    return f"{fit.reserved / fit.used:.3g}x" if fit.used else "unused"


def _total_row(judged: Sequence[JudgedContainer], resource: str) -> tuple[str, ...]:
    totals = _totals(judged, resource)
    cells = []
    for policy in JUDGED:
        found = totals[policy]
        ratio = found["reserved_per_used"]
        shown = "unused" if ratio is None else f"{ratio:.3g}x"
        cells.append("-" if found["over_ratio"] is None else f"{found['over_ratio'] * 100:.3g}% {shown}")
    kills = str(sum(each.oom_kills for each in judged)) if resource == MEMORY else ""
    name = "mean of all" if resource == CPU else ""
    return (name, "", "cpu" if resource == CPU else "mem", "", *cells, kills)


def _totals(containers: Sequence[JudgedContainer], resource: str) -> dict[str, dict[str, float | None]]:
    """Return, by policy, the mean share of time over the request, and the totals of reservations and avoided kills.

    All policies are compared on the containers for which each of them has a request. If there are no such containers,
    each policy is judged on the containers for which it has a request.
    """
    complete = [each for each in containers if len(each.fits[resource]) == len(JUDGED)]
    found: dict[str, dict[str, float | None]] = {}
    for policy in JUDGED:
        # Even without any current request, the others must be compared.
        chosen = complete or [each for each in containers if policy in each.fits[resource]]
        fits = [each.fits[resource][policy] for each in chosen if policy in each.fits[resource]]
        used = sum(fit.used for fit in fits)
        found[policy] = {
            "containers": len(fits),
            "over_ratio": sum(fit.over_ratio for fit in fits) / len(fits) if fits else None,
            "reserved_per_used": sum(fit.reserved for fit in fits) / used if used else None,
            "days_over": sum(fit.days_over for fit in fits),
            "oom_kills_avoided": sum(fit.kills_avoided for fit in fits) if resource == MEMORY else None,
        }
    return found


def _item(each: JudgedContainer) -> dict[str, object]:
    workload = each.name.workload
    return {
        "namespace": workload.namespace,
        "kind": workload.kind,
        "name": workload.name,
        "container": each.name.container,
        "status": "ok" if each.days else "error",
        "message": "" if each.days else _too_little(each),
        "days": each.days,
        "history_days": each.history_days,
        "oom_kills": each.oom_kills,
        **{
            resource: {policy: _fit(each.fits[resource].get(policy), resource) for policy in JUDGED}
            for resource in RESOURCES
        },
    }


def _fit(fit: RequestFit | None, resource: str) -> dict[str, object] | None:
    if fit is None:
        return None
    return {
        "over_ratio": round(fit.over_ratio, 6),
        "reserved": round(fit.reserved, 6),
        "used": round(fit.used, 6),
        "reserved_per_used": round(fit.reserved / fit.used, 4) if fit.used else None,
        "days_over": fit.days_over,
        "oom_kills_avoided": fit.kills_avoided if resource == MEMORY else None,
    }


def _too_little(each: JudgedContainer) -> str:
    return (
        f"not judged: {each.history_days} days of its usage are known, and a day is judged from at least "
        f"{FEWEST_HISTORY_DAYS} days before it"
    )
