"""Checks that the programs accept the commands on the pages."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.util import find_spec
from itertools import chain, pairwise
from typing import Any, Final

import yaml

from adapter.commands.table import COMMANDS as ADAPTER
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.nodes.extender.protocol import decode_args
from adapter.nodes.hotspots.descheduler_query import parse_query
from recommender.commands.table import COMMANDS as RECOMMENDER
from recommender.kubectl.table import COMMANDS as PLUGIN
from tests.support.checkout import CHECKOUT

PROGRAMS: Final = {"tidewatch-adapter": ADAPTER, "tidewatch-recommender": RECOMMENDER, "kubectl-tidewatch": PLUGIN}

NOT_RUN: Final = {
    "serve": "serves until it is ended, with an API server and Prometheus; tests/adapter/commands/serve runs it",
    "explain": "asks Prometheus or a server; tests/adapter/commands/test_explain.py runs it",
    "init": "asks Prometheus; tests/adapter/commands/init and tests/recommender/commands/init run it",
    "why": "asks an API server; tests/recommender/kubectl and tests/e2e/hpa run it",
    "what-if": "asks an API server; tests/recommender/kubectl runs it",
    "doctor": "asks an API server and Prometheus; tests/adapter/commands/doctor and test_doctor.py run it",
    "nodes": "serves until it is ended, with Prometheus; tests/adapter/commands/nodes runs it",
    "readiness": "serves until it is ended; tests/adapter/commands/test_readiness.py runs it",
    "run": "decides until it is ended; test_run.py runs it",
    "proportional": "asks an API server; test_proportional_process.py runs it",
    "cpva": "asks an API server; tests/recommender/commands/vertical runs it",
    "pod-nanny": "asks an API server; tests/recommender/commands/vertical runs it",
    "expander": "serves until it is ended; tests/recommender/commands/expander runs it",
    "sizes": "asks Prometheus; tests/recommender/commands/test_sizes.py runs it",
    "replay": "needs a recorded past; tests/recommender/replay runs it",
    "backtest": "needs recorded load, and fits models; tests/recommender/commands/test_backtest.py runs it",
}
"""Commands of ours that are only parsed here, with the reason."""
NEEDS_MORE: Final = {
    "kubectl": "asks an API server; tests/e2e uses the same resources",
    "pip": "installs from a package index; .ci/python-environment installs the same project",
    "make": "runs for minutes; whether the target exists is tested",
    "python": "runs for minutes; whether the module exists is tested",
    "curl": "asks a running server; what it sends is read by the server's own parser",
    "helm": "is built for the end-to-end tests; its values are compared with the schema",
}
"""Commands that are not ours, with the reason why they are not run."""


def take_command(words: list[str]) -> None:
    program, *rest = [word for word in words if word != "&"]
    if program in PROGRAMS:
        name, *arguments = rest[: rest.index(">")] if ">" in rest else rest
        assert parse_flags(PROGRAMS[program].load(name).flags, arguments, {}).warnings == ()
        assert name in {"check", "recommend", *NOT_RUN}
    elif program == "make":
        assert re.search(rf"^{rest[0]}:.*## ", (CHECKOUT / "Makefile").read_text(), flags=re.MULTILINE)
    elif program == "python":
        assert rest[0] == "-m"
        assert find_spec(rest[1]) is not None
    elif program == "helm":
        take_helm(rest)
    elif program == "kubectl":
        take_kubectl(rest)
    elif program == "curl":
        take_curl(rest)
    elif program == "sed":
        take_sed(rest)
    else:
        assert program in NEEDS_MORE


def take_helm(words: list[str]) -> None:
    """Check that the chart exists, that its schema has each value that is set, and that the chart can be rendered.

    Values of a former chart lack what this one needs, and the recommender has no configuration unless one is set.
    """
    verb, _, chart, *_ = words
    assert "--namespace" in words
    if verb == "uninstall":
        return
    assert verb in {"install", "upgrade"}
    assert (CHECKOUT / chart / "Chart.yaml").is_file()
    schema = json.loads((CHECKOUT / chart / "values.schema.json").read_text())
    assert "--reuse-values" not in words
    assert ("recommender.enabled=true" in words) is any(word.startswith("recommender.config=") for word in words)
    given = [words[index + 1] for index, word in enumerate(words) if word == "--set"]
    assert given or "--values" in words
    for path, _, value in (one.partition("=") for one in chain.from_iterable(text.split(",") for text in given)):
        found: dict[str, Any] = schema
        for key in path.split("."):
            found = found["properties"][key]
            found = schema["definitions"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found
        assert (found["type"] == "boolean") is (value in {"true", "false"}), path
        assert re.search(found.get("pattern", ""), value), path


def take_kubectl(words: list[str]) -> None:
    """Check that an object is looked for in a namespace of its own, not in the one that the reader happens to use."""
    named = [word for word in words if re.fullmatch(r"[a-z]+/[a-z0-9-]+|tidewatch-[a-z-]+", word)]
    assert not named or {"-n", "--namespace"} & {*words}, f"{named} without a namespace"


def take_curl(words: list[str]) -> None:
    for flag, value in pairwise(words):
        if flag == "-d":
            assert decode_args(value.encode()).names
        elif flag == "--data-urlencode":
            parse_query(value.removeprefix("query="))


def take_sed(words: list[str]) -> None:
    """Run sed on the file that the chart brings, and check that the file is changed."""
    script, name, *_ = words
    file = next((CHECKOUT / "helm").rglob(name))
    ran = subprocess.run(["sed", script, str(file)], capture_output=True, text=True, check=True)
    assert ran.stdout != file.read_text()
    assert yaml.safe_load(ran.stdout)
