"""The goals that forecasts must reach, and a table of the rows for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.report import about_machine, table

if TYPE_CHECKING:
    from benchmarks.report import Cell, Report, Row

MOST_SHORTAGE: Final = 1.05
"""The largest shortage, as a multiple of that of plain headroom at equal replica-hours, in either measure."""
MOST_REGRET: Final = 0.1
RIVALS: Final = {
    "phpa-linear": "line",
    "phpa-holt-winters": "holt-w.",
    "percentile": "perc.",
    "largest-of-both": "yesterday",
}
"""Other autoscalers' forecasts, and the headings of their columns."""
REGRET_PARTS: Final = ("cost", "proof", "scales", "weights")
"""What a regret consists of, in the order in which auto is spared it."""
_HARM, _REGRET, _RIVAL = "harm", "regret", "rival"
_SAID: Final = {
    _HARM: f"short more than {MOST_SHORTAGE:g} times as often or as much as headroom",
    _REGRET: f"regret above {MOST_REGRET:g}",
    _RIVAL: "another autoscaler's forecast is ahead",
}


def missed_goals(row: Row) -> list[str]:
    """Return which of the goals `harm`, `regret` and `rival` a row misses."""
    often, much = (_number(row[f"auto_{name}_under_versus_headroom"]) for name in ("tau", "theta"))
    rivals = min(_number(row[f"{rival}_shortage"]) for rival in RIVALS)
    found = {
        _HARM: max(often, much) > MOST_SHORTAGE,
        _REGRET: _number(row["regret"]) > MOST_REGRET,
        _RIVAL: rivals < (often + much) / 2,
    }
    return [goal for goal, is_missed in found.items() if is_missed]


def as_goals(found: Report) -> str:
    """Return a line for each row, followed by the goals and the rows that miss them."""
    lines = [f"{found.name}\n{about_machine(found)}\n", table([_shown(row) for row in found.rows]), ""]
    for goal, said in _SAID.items():
        names = [_name(row) for row in found.rows if goal in missed_goals(row)]
        lines.append(f"{said}: {', '.join(names) or 'nowhere'}")
    if regrets := [_parts_shown(row) for row in found.rows if _REGRET in missed_goals(row)]:
        lines.append(f"\nWhat a regret above {MOST_REGRET:g} consists of:\n\n{table(regrets)}")
    return "\n".join(lines) + "\n"


def _shown(row: Row) -> dict[str, Cell]:
    return {
        "trace": row["trace"],
        "min": _number(row["startup_seconds"]) / 60,
        "often": _two_digits(row["auto_tau_under_versus_headroom"]),
        "much": _two_digits(row["auto_theta_under_versus_headroom"]),
        "costs": _two_digits(row["auto_cost_as_headroom_ratio"]),
        "leads": row["auto_leads"],
        "regret": _two_digits(row["regret"]),
        "best": row["best_model"],
        **{head: _two_digits(row[f"{rival}_shortage"]) for rival, head in RIVALS.items()},
    }


def _parts_shown(row: Row) -> dict[str, Cell]:
    return {
        "row": _name(row),
        "regret": _two_digits(row["regret"]),
        **{part: _two_digits(row.get(f"regret_{part}")) for part in REGRET_PARTS},
    }


def _name(row: Row) -> str:
    return f"{row['trace']} {_number(row['startup_seconds']) / 60:g} min"


def _two_digits(cell: Cell) -> Cell:
    return round(float(cell), 2) if isinstance(cell, float | int) else cell


def _number(cell: Cell) -> float:
    """Return the number; 1 if neither the policy nor headroom has a shortage."""
    return float(cell) if isinstance(cell, float | int) else 1.0
