"""Do proven query plans ever differ from the exact query? Random queries on random series in a real Prometheus.

For each random template, every proven plan is queried for several requesters and compared with their answers from the
exact query. `wrong` must be 0: each case is a gap in the proof and is printed in full. `needless_percent` is the share
of templates whose wide plan was refused although all tried requesters would have got the exact answer from it, with
values.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from benchmarks.options import between, command_line
from benchmarks.progress import Progress
from benchmarks.report import as_json, as_text, report
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import PrometheusMissingError
from tests.support.plan_samples import prometheus_with_samples
from tests.support.plan_trials import CLUSTER_EXTERNAL, EXTERNAL, NODES, PODS, Field, Tally, try_refused, try_template

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from benchmarks.report import Row

NAME: Final = "plan_proof"
_FIELDS: Final = {"pods": PODS, "nodes": NODES, "external": EXTERNAL, "external, no namespaces": CLUSTER_EXTERNAL}
_TEMPLATES_PER_DATA_SET: Final = 1000
_REQUESTERS: Final = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0 if no answer is wrong, 1 if one is, and 2 if Prometheus does not run."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    progress = Progress(NAME)
    try:
        rows = [_tried(name, field, options, progress) for name, field in _FIELDS.items()]
    except (ProcessFailedError, PrometheusMissingError) as e:
        print(f"{NAME}: {e}", file=sys.stderr)
        return 2
    found = report(NAME, rows, expressions=options.expressions, seed=options.seed)
    print(as_json(found) if options.output == "json" else as_text(found))
    return 1 if any(row["wrong"] for row in rows) else 0


def _tried(name: str, field: Field, options: argparse.Namespace, progress: Progress) -> Row:
    random, tally = Random(f"{name} {options.seed}"), Tally()
    templates = field.templates(random)
    began = time.monotonic()
    for start in range(0, options.expressions, _TEMPLATES_PER_DATA_SET):
        progress.say(f"{name}: {start:,} of {options.expressions:,} templates, {len(tally.differences)} wrong answers")
        count = min(_TEMPLATES_PER_DATA_SET, options.expressions - start)
        _try_some(field, [next(templates) for _ in range(count)], random, tally)
    for difference in tally.differences:
        progress.say(f"wrong: {difference}")
    return _row(name, tally, time.monotonic() - began)


def _try_some(field: Field, templates: Sequence[str], random: Random, tally: Tally) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="tidewatch-plans-") as folder,
        prometheus_with_samples(Path(folder), random.randrange(2**32)) as prometheus,
    ):
        for template in templates:
            metric, requesters = field.metric(template), random.sample(field.requesters, _REQUESTERS)
            try_template(prometheus, metric, requesters, tally)
            try_refused(prometheus, metric, requesters, tally)


def _row(name: str, tally: Tally, seconds: float) -> Row:
    return {
        "metrics": name,
        "expressions": tally.templates,
        "proven_wide": tally.wide,
        "proven_namespace": tally.namespace,
        "refused": tally.exact,
        "answers_compared": tally.compared,
        "answers_with_values": tally.with_values,
        "wrong": len(tally.differences),
        "refused_by_prometheus": tally.narrowed,
        "needless_percent": round(100 * tally.needless / max(1, tally.templates), 2),
        "seconds": round(seconds, 1),
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument(
        "--expressions", type=between(1, 10_000_000), default=2000, help="random templates for each kind of metric"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
