"""What the extender costs kube-scheduler: `python -m benchmarks.extender --names 500`.

One client sends one request after another, as the scheduler does. The rows are `/scheduler/prioritize` with two
policies, `/scheduler/filter`, and the floor: an empty Flask handler under the same server that reads the same body and
answers as many bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.cores import Cores, on
from benchmarks.empty_server import running_floor
from benchmarks.node_stage import node_name, node_stage, running_nodes, wait_for_data
from benchmarks.one_client import ask
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME: Final = "extender"
CONFIGURATION: Final = """\
apiVersion: tidewatch.io/v1alpha1
kind: SchedulingConfiguration
policies:
- name: target-load-packing
  weight: 5
- name: load-variation-risk-balancing
filter: {cpu: 80%, memory: 90%}
"""
POD: Final = {
    "metadata": {"name": "new", "namespace": "team-1", "uid": "1", "labels": {"app": "app-1"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}]},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 where an answer was wrong or missing."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{NAME}", description=__doc__)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--nodes", type=int, help="default: as many as names")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    nodes = max(options.names, options.nodes or 0)
    return run(NAME, options.output, lambda progress: measure(options.names, nodes, options.requests, progress))


def measure(names: int, nodes: int, requests: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    cores = Cores.of_this_machine()
    listed = [node_name(number) for number in range(names)]
    body = json.dumps({"Pod": POD, "Nodes": None, "NodeNames": listed}).encode()
    with tempfile.TemporaryDirectory(prefix="tidewatch-bench-") as name:
        folder = Path(name)
        (folder / "scheduling.yaml").write_text(CONFIGURATION)
        progress.say(f"writing the series of {nodes} nodes")
        flags = (f"--objects={folder / 'objects'}", f"--scheduling-config={folder / 'scheduling.yaml'}")
        rows: list[Row] = []
        with on(cores.others), node_stage(folder, nodes, 10 * nodes) as prometheus:
            with on(cores.measured), running_nodes(folder, prometheus, *flags) as running, on(cores.others):
                wait_for_data(running)
                progress.wait_until(time.monotonic() + 5.0, "the first refresh ends")
                for verb in ("prioritize", "filter"):
                    before = usage(running.process.pid)
                    asked = ask(running.port, f"/scheduler/{verb}", requests, body=body)
                    after = usage(running.process.pid)
                    more = {"cpu_seconds": round(after.cpu_seconds - before.cpu_seconds, 2), "rss_mib": after.rss_mib}
                    rows.append({**asked.row(f"POST /scheduler/{verb}"), **more})
            size = max(int(row["answer_bytes"] or 0) for row in rows)
            with on(cores.measured), running_floor(folder, size) as port, on(cores.others):
                rows.append(ask(port, "/post", requests, body=body).row("floor: empty Flask handler"))
    return report(NAME, [{"names": names, "nodes": nodes, **row} for row in rows])


if __name__ == "__main__":
    sys.exit(main())
