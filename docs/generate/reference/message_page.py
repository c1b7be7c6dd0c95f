"""Every message with its repair: those that the code spells out, the codes of findings, and the alerts."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import yaml

from adapter.metrics.rulebook.findings import Code
from docs.generate.reference.markdown import plain, table
from docs.generate.reference.texts import UNKNOWN, constants_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_INTRODUCTION: Final = """# Messages and repairs

Every message that names a repair: look up what you see in a log, on a terminal or in the status of an object. `…`
stands for a name or a value. Most messages begin with the file and line, the flag or the object that they are about,
which is left out here. `make docs` writes this page from the code.
"""
PARTS: Final = {
    "adapter/foundation/service": "Command lines and servers",
    "adapter/foundation/documents": "YAML and JSON files",
    "adapter/foundation": "Prometheus, Kubernetes and values of any file",
    "adapter/commands": "Commands of tidewatch-adapter",
    "adapter/metrics/rulebook": "Rules",
    "adapter/metrics": "The metrics APIs",
    "adapter/nodes": "The load of nodes",
    "adapter/readiness": "The readiness sidecar",
    "recommender/commands": "Commands of tidewatch-recommender",
    "recommender/kubectl": "kubectl tidewatch",
    "recommender/configuration": "The recommender's configuration",
    "recommender/kinds/proportional": "Proportional recommendations",
    "recommender/kinds/predictive": "Predicted load",
    "recommender/kinds/cluster_size": "Cluster size",
    "recommender/kinds/resources": "Sizes of containers",
    "recommender/backtest": "Backtests",
    "recommender/replay": "Replays",
    "recommender/shapes": "Machine shapes",
    "recommender": "The running recommender",
    "adapter": "Both programs",
}
"""Headings by the folder of the messages; the first folder that fits counts."""
_REPAIRS: Final = frozenset(
    {
        *("add", "aggregate", "allow", "ask", "begin", "choose", "check", "configure", "correct", "create", "delete"),
        *("find", "flatten", "give", "grant", "install", "keep", "leave", "let", "list", "load", "look", "lower"),
        *("make", "mount", "move", "name", "narrow", "put", "raise", "read", "record", "remove", "renew"),
        *("repair", "repeat", "run", "save", "scrape", "see", "send", "separate", "set", "split", "start", "state"),
        *("synchronize", "try", "turn", "unset"),
        *("upgrade", "use", "wait", "write"),
    }
)
"""Words that begin a repair."""
_REQUIRED: Final = "it must "
"""A message with these words states a requirement, which is its repair."""
_OF_KINDS: Final = frozenset({"Scalar", "checked"})
"""Calls whose first text states what a value should be."""
_FORMAT: Final = re.compile(r"%[sdr]|%\.\d+f|\{\w+\}")
"""A placeholder for a value. A brace with more than a name in it is an example of YAML."""


_PLACE: Final = re.compile(rf"^{UNKNOWN}:(?:\d+:)?")
"""The place that begins a message: a file with its line, or another place."""


def messages_page(checkout: Path) -> str:
    """Return the page of all messages."""
    found: dict[str, dict[tuple[str, str], None]] = {heading: {} for heading in PARTS.values()}
    for top in ("adapter", "recommender"):
        for path in sorted((checkout / top).rglob("*.py")):
            name = str(path.relative_to(checkout))
            heading = next(each for prefix, each in PARTS.items() if name.startswith(f"{prefix}/"))
            found[heading] |= dict.fromkeys(messages_of(path.read_text(encoding="utf-8")))
    sections = [
        f"## {heading}\n\n{table(('message', 'what to do'), [(plain(what), plain(fix)) for what, fix in sorted(rows)])}"
        for heading, rows in found.items()
        if rows
    ]
    return "\n".join([_INTRODUCTION, _codes(), _alerts(checkout), *sections])


def messages_of(source: str) -> Iterator[tuple[str, str]]:
    """Yield the messages of a module with their repairs: `WHAT: REPAIR` in one text, or two arguments of a call."""
    module = ast.parse(source)
    nodes = list(ast.walk(module))
    constants = constants_of(module)
    # Docstrings, and the parts of texts that are read as a whole.
    passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            passed |= {id(part) for part in ast.iter_child_nodes(node)}
        if isinstance(node, ast.Module):
            yield from _of_calls(nodes, constants, constants)
        # Calls in other functions yield nothing that those of the whole module do not.
        if isinstance(node, ast.FunctionDef) and (local := constants_of(node)):
            yield from _of_calls(ast.walk(node), constants, local)
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and id(node) not in passed:
            yield from _of_text(text_of(node, constants))


def _of_calls(
    nodes: Iterable[ast.AST], constants: Mapping[str, str], local: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the messages that are arguments of calls and are followed by their repairs.

    `local` are the constants of the function, or of the module where the nodes are all of it.
    """
    for node in nodes:
        if isinstance(node, ast.Call):
            is_kind = isinstance(node.func, ast.Name) and node.func.id in _OF_KINDS
            texts = (
                local.get(each.id) if isinstance(each, ast.Name) else text_of(each, constants) for each in node.args
            )
            for what, fix in pairwise(texts):
                if what is not None and fix is not None and " " in what.strip() and _is_repair(fix):
                    yield (f"{UNKNOWN} is not {what}" if is_kind else _shown(what)), _shown(fix)


def _of_text(text: str | None) -> Iterator[tuple[str, str]]:
    what, colon, fix = (text or "").rpartition(": ")
    # The help of a flag is a sentence.
    # A flag, or a name that is known when it runs, may stand alone before what to do.
    is_said = " " in what.strip(f"{UNKNOWN}: ") or what.startswith("--") or (what == UNKNOWN and UNKNOWN not in fix)
    if colon and is_said and _is_repair(fix) and not fix.endswith("."):
        yield _shown(what), _shown(fix)


def _is_repair(text: str) -> bool:
    return " " in text and "\n" not in text and (text.partition(" ")[0] in _REPAIRS or text.startswith(_REQUIRED))


def _shown(text: str) -> str:
    """Return a text without the place at its beginning."""
    return _PLACE.sub("", _FORMAT.sub(UNKNOWN, text), count=1).strip("; ")


def _codes() -> str:
    rows = [(f"[`{each.value}`](../findings.md#{each.value})",) for each in sorted(Code)]
    cells = [rows[at : at + 4] for at in range(0, len(rows), 4)]
    lines = [[cell for (cell,) in [*group, *[("",)] * (4 - len(group))]] for group in cells]
    return f"## Findings of rule files\n\n{table(('code', '', '', ''), lines)}"


def _alerts(checkout: Path) -> str:
    """Return the alerts that ship, each with a link to its runbook."""
    rows = [
        (f"[`{rule['alert']}`](../runbooks.md#{rule['alert'].lower()})", plain(_summary(rule)))
        for path in sorted((checkout / "rules" / "alerts").glob("*.yaml"))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]
    return f"## Alerts\n\n{table(('alert', 'what it says'), sorted(rows))}"


def _summary(rule: Mapping[str, Mapping[str, str]]) -> str:
    return re.sub(r"\{\{.*?\}\}", UNKNOWN, rule["annotations"]["summary"])
