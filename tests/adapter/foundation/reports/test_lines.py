"""A report for people."""

from __future__ import annotations

from adapter.foundation.reports.lines import as_text, ok, warning


def test_a_message_of_the_cluster_controls_neither_the_terminal_nor_the_lines_of_the_report() -> None:
    problem = "it does not scale: \x1b[2Jqueue\nok: hpas: none of 9 HPAs lacks a metric"
    text = as_text([warning("hpa/shop/web", problem, "run `explain \u202eMETRIC`"), ok("hpas", "fine")])
    assert text.splitlines() == [
        r"warning: hpa/shop/web: it does not scale: \x1b[2Jqueue\nok: hpas: none of 9 HPAs lacks a metric",
        r"  fix: run `explain \u202eMETRIC`",
        "ok: hpas: fine",
        "",
        "0 errors, 1 warning, 0 unknown, 1 ok",
    ]
