"""The files that `init` writes, and what it says about them (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.commands.init.hpa_text import hpa_text
from adapter.commands.init.rules_text import rules_text, unused_text, value_text
from adapter.commands.init.workloads import file_names, scalable_workloads
from adapter.commands.program import PROGRAM
from adapter.foundation.exporters.known_metrics import MetricSubject
from adapter.foundation.reports.terminal_escaping import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from adapter.commands.init.tried_rule import TriedRule
    from adapter.foundation.exporters.recognition import UnusedMetric

RULES_FILE: Final = "rules.yaml"
MOST_EXAMPLES: Final = 50
"""Largest number of workloads for which an HPA is written."""


@dataclass(frozen=True, slots=True)
class ProposedFiles:
    """The files, by name, and the lines that describe them."""

    files: Mapping[str, str]
    lines: tuple[str, ...]


def proposal(
    folder: Path, source: str, moment: str, rules: Sequence[TriedRule], unused: Sequence[UnusedMetric]
) -> ProposedFiles:
    """Return the files to write; `source` is the address of Prometheus, and `moment` the time of the queries."""
    scalable = scalable_workloads(rules)
    shown = scalable[:MOST_EXAMPLES]
    names = file_names(each.workload for each in shown)
    header = (
        f"Rules for what {source} held at {moment}, written by `{PROGRAM} init`. The values are those of that moment.",
        f"Serve them with `{PROGRAM} serve --config {folder / RULES_FILE}` and the same --prometheus flags.",
    )
    files = {RULES_FILE: rules_text(header, rules, unused)}
    lines = [f"{folder / RULES_FILE}: {len(rules)} rule{'' if len(rules) == 1 else 's'}"]
    lines += [f"  {_served_name(rule)}: {value_text(rule)}" for rule in rules]
    for each in shown:
        name = names[each.workload]
        files[name] = hpa_text(each)
        metric = each.rule.metric.known.name
        workload = each.workload
        lines.append(f"{folder / name}: {workload.kind} {workload.namespace}/{workload.name} by {metric}")
    if len(scalable) > len(shown):
        lines.append(
            f"{len(scalable) - len(shown)} more workloads have such metrics; {MOST_EXAMPLES} are shown as examples"
        )
    lines += [f"not served: {unused_text(each)}" for each in unused]
    return ProposedFiles(files, tuple(map(printable, lines)))


def _served_name(rule: TriedRule) -> str:
    known = rule.metric.known
    return known.name if known.subject is MetricSubject.EXTERNAL else f"{known.subject.value}/{known.name}"
