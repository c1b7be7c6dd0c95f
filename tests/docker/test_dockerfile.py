"""The Dockerfile fits the checkout. Tests cannot build images; hadolint reads the file in `make lint`."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from adapter.commands.nodes.flags import NODES
from adapter.commands.readiness import READINESS
from adapter.commands.serve.flags import SERVE
from adapter.foundation.service.flags.parsing import parse_flags
from adapter.foundation.service.server.addresses import Address
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())


def instructions() -> Iterator[tuple[str, str]]:
    """Yield each instruction and its arguments, on one line."""
    text = re.sub(r"^\s*#.*\n", "", (CHECKOUT / "Dockerfile").read_text(), flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name:
            yield name, rest


def all_of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def runtime_stage() -> list[tuple[str, str]]:
    """Return the stage that the images of all targets are based on."""
    found = list(instructions())
    starts = [index for index, (name, _) in enumerate(found) if name == "FROM"]
    (begin,) = [index for index in starts if found[index][1].endswith(" AS runtime")]
    return found[begin : min(index for index in starts if index > begin)]


def copied() -> list[str]:
    """Return what is copied from the checkout."""
    return [source for rest in all_of("COPY") if "--from" not in rest for source in shlex.split(rest)[:-1]]


def ignored(name: str) -> bool:
    """Return whether .dockerignore keeps the file out of the build: the last line that matches decides."""
    lines = [
        line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    fitting = [line for line in lines if fnmatch(name, line.removeprefix("!"))]
    return bool(fitting) and not fitting[-1].startswith("!")


def test_all_copied_paths_exist_and_are_not_ignored() -> None:
    assert copied()
    assert [name for name in copied() if not (CHECKOUT / name).exists() or ignored(name)] == []


def test_nothing_else_is_sent_to_the_build() -> None:
    assert sorted(path.name for path in CHECKOUT.iterdir() if not ignored(path.name)) == sorted(copied())


def test_all_that_makes_the_wheel_is_copied() -> None:
    project, wheel = PROJECT["project"], PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    shared = {Path(source).parts[0] for source in wheel["shared-data"]}
    needed = {"pyproject.toml", project["readme"], *project["license-files"], *wheel["packages"], *shared}
    assert needed <= set(copied())


def test_packages_are_installed_by_hash_and_as_wheels() -> None:
    commands = [command.strip() for rest in all_of("RUN") for command in rest.split("&&")]
    installs = [command for command in commands if re.match(r"pip (--python \S+ )?(install|wheel) ", command)]
    from_locks = [command for command in installs if "--no-index" not in command]
    assert [re.findall(r"-r (\S+)", command) for command in from_locks] == [
        ["requirements-build.lock"],
        ["requirements-adapter.lock"],
        ["/build/requirements-nodes.lock"],
        ["requirements.lock"],
    ]
    assert all("--require-hashes" in command and "--only-binary :all:" in command for command in from_locks)


def test_the_lock_of_the_build_has_the_requirements_of_pyproject() -> None:
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]
    assert re.search(r"^hatchling==", (CHECKOUT / "requirements-build.lock").read_text(), flags=re.MULTILINE)


def test_the_largest_image_is_the_one_without_a_target() -> None:
    assert all_of("FROM")[-1] == "runtime AS all"


OF_NODES = (CHECKOUT / "adapter" / "nodes", CHECKOUT / "adapter" / "commands" / "nodes")


def third_party_imports(*, nodes: bool) -> set[str]:
    """Return the packages that modules of the adapter, with or without `nodes`, import when they are loaded or run."""
    found: set[str] = set()
    for path in (CHECKOUT / "adapter").rglob("*.py"):
        if not nodes and any(path.is_relative_to(folder) for folder in OF_NODES):
            continue
        found |= _imported_by(path)
    return found - sys.stdlib_module_names - {"adapter", "_typeshed"}


@cache
def _imported_by(path: Path) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def test_the_lock_of_the_adapter_has_what_its_modules_import() -> None:
    groups = PROJECT["dependency-groups"]
    adapter: list[str] = groups["adapter"]
    included, nodes = groups["nodes"][0], groups["nodes"][1:]
    assert included == {"include-group": "adapter"}
    assert {*adapter, *nodes} <= set(PROJECT["project"]["dependencies"])
    distributions = packages_distributions()
    for named, imported in (
        (adapter, third_party_imports(nodes=False)),
        ([*adapter, *nodes], third_party_imports(nodes=True)),
    ):
        assert {distributions[each][0].lower().replace("_", "-") for each in imported} == {
            re.split("[<>=]", each)[0] for each in named
        }


LOADED = """\
import importlib, pkgutil, sys
from importlib.metadata import packages_distributions
import adapter, kubernetes.config.kube_config, kubernetes.config.incluster_config
import prometheus_api_client.prometheus_connect
for module in pkgutil.walk_packages(adapter.__path__, "adapter."):
    if sys.argv[1:] or not module.name.startswith(("adapter.nodes", "adapter.commands.nodes")):
        importlib.import_module(module.name)
of = packages_distributions()
print(*{name for module in sys.modules for name in of.get(module.partition(".")[0], ())})
"""
NEEDED_TO_BUILD = {"pycparser"}
"""Packages that another package requires and only its own build loads."""


@pytest.mark.parametrize(("lock", "arguments"), [("adapter", []), ("nodes", ["nodes"])])
def test_the_locks_of_the_adapter_have_nothing_that_it_never_loads(lock: str, arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], check=True, capture_output=True, text=True)
    loaded = {name.lower().replace("_", "-") for name in done.stdout.split()}
    text = (CHECKOUT / f"requirements-{lock}.lock").read_text()
    assert set(re.findall(r"^([a-z0-9-]+)==", text, flags=re.MULTILINE)) - loaded == NEEDED_TO_BUILD


LEFT_OUT = """\
import importlib, pkgutil, sys
import adapter, recommender, kubernetes.config.kube_config, kubernetes.config.incluster_config
for package in (adapter, recommender):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
kubernetes = ("kubernetes.aio", "kubernetes.client.api.", "kubernetes.client.models.")
print(*[name for name in sys.modules if name.startswith(kubernetes) or ".tests." in name])
"""


def test_no_package_that_the_images_lack_is_loaded() -> None:
    recipe = " ".join(all_of("RUN"))
    assert recipe.count("rm -r kubernetes/aio kubernetes/client/api && find kubernetes/client/models") == 2
    assert recipe.count("find . -type d -name tests -prune") == 3
    done = subprocess.run([sys.executable, "-c", LEFT_OUT], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_it_runs_as_the_user_of_the_chart_and_not_as_root() -> None:
    values = yaml.safe_load((CHECKOUT / "helm" / "tidewatch" / "values.yaml").read_text())
    user = values["runAsUser"]
    assert [rest for name, rest in runtime_stage() if name == "USER"] == [f"{user}:{user}"]
    assert user > 0


def test_it_starts_a_program_of_the_project() -> None:
    (command,) = all_of("CMD")
    assert json.loads(command)[0] in PROJECT["project"]["scripts"]


def test_the_ports_are_those_that_the_programs_open() -> None:
    flags = parse_flags(SERVE, ["--config=rules"], {})
    plain = flags.address("plain-bind-address")
    assert plain
    recommender = yaml.safe_load((CHECKOUT / "helm" / "tidewatch" / "values.yaml").read_text())["recommender"]
    ports = [flags.integer("secure-port"), plain.port, recommender["metricsPort"], recommender["page"]["port"]]
    listen = READINESS.by_name["listen"].default
    assert isinstance(listen, Address)
    ports += [listen.port, parse_flags(NODES, ["--prometheus-url=http://prometheus:9090"], {}).integer("port")]
    assert all_of("EXPOSE") == [" ".join(map(str, ports))]


def test_the_label_is_of_the_project_s_version() -> None:
    labels = dict(pair.split("=", 1) for rest in all_of("LABEL") for pair in shlex.split(rest))
    assert labels["org.opencontainers.image.version"] == PROJECT["project"]["version"]
    assert labels["org.opencontainers.image.licenses"] == PROJECT["project"]["license"]
    assert labels["org.opencontainers.image.source"] in PROJECT["project"]["urls"]["Documentation"]


def test_each_stage_is_built_on_the_one_configurable_base() -> None:
    known = {"${PYTHON}"}
    for stage in all_of("FROM"):
        base, _, name = stage.split()
        assert base in known
        known.add(name)
    assert known >= {"readiness", "adapter", "nodes", "all"}
    (base,) = [rest.removeprefix("PYTHON=") for rest in all_of("ARG") if rest.startswith("PYTHON=")]
    assert re.fullmatch(r"python:3\.11-slim-bookworm", base)
    assert PROJECT["project"]["requires-python"] == ">=3.11"


SERVE_OURS = "tidewatch-adapter|serve"
PROPORTIONAL = "tidewatch-recommender|proportional"
CHART_OF_CPA = [
    "--configmap=dns-autoscaler",
    "--logtostderr=true",
    "--namespace=kube-system",
    "--target=deployment/coredns",
    "--v=0",
    "--max-sync-failures=0",
    "--nodelabels=kubernetes.io/os=linux",
    "--poll-period-seconds=10",
    "--stderrthreshold=2",
]
"""The `args` of cluster-proportional-autoscaler's chart 1.1.0, which has no `command`."""
ARTICLE = [
    "--namespace=kube-system",
    "--configmap=dns-autoscaler",
    "--target=Deployment/kube-dns",
    '--default-params={"linear":{"coresPerReplica":256,"nodesPerReplica":16,"preventSinglePointFailure":true}}',
    "--logtostderr=true",
    "--v=2",
]
"""The flags of the manifest in Kubernetes' documentation on DNS autoscaling, whose `command` is the program's path."""
CPVA = "tidewatch-recommender|cpva"
README_OF_CPVA = ["--target=deployment/thing", "--namespace=kube-system", "--logtostderr=true", "--default-config={}"]
"""Flags of the manifest in the README of cluster-proportional-vertical-autoscaler."""
NANNY = "tidewatch-recommender|pod-nanny"
EXAMPLE_OF_NANNY = ["--config-dir=/etc/config", "--cpu=300m", "--extra-cpu=20m", "--deployment=nanny-v1"]
"""Flags of addon-resizer's example Deployment."""
IMAGE = "tidewatch"
"""The name of the entrypoint that runs without a `command`."""

STARTS: dict[str, tuple[str, list[str], str]] = {
    "prometheus-adapter's chart": (IMAGE, ["/adapter", "--config=a b", "--v", "6"], f"{SERVE_OURS}|--config=a b|--v|6"),
    "prometheus-adapter as the command": ("adapter", ["--config=a b"], f"{SERVE_OURS}|--config=a b"),
    "prometheus-adapter with flags alone": (IMAGE, ["--config=a b"], f"{SERVE_OURS}|--config=a b"),
    "prometheus-adapter without flags": (IMAGE, ["/adapter"], SERVE_OURS),
    "CPA's chart": (IMAGE, CHART_OF_CPA, "|".join([PROPORTIONAL, *CHART_OF_CPA])),
    "CPA's path as the first argument": (
        IMAGE,
        ["/cluster-proportional-autoscaler", *ARTICLE],
        "|".join([PROPORTIONAL, *ARTICLE]),
    ),
    "CPA's path as the command": (
        "cluster-proportional-autoscaler",
        ARTICLE,
        "|".join([PROPORTIONAL, *ARTICLE]),
    ),
    "CPA's path with a flag that is missing": (
        "cluster-proportional-autoscaler",
        ["--target=deployment/a"],
        f"{PROPORTIONAL}|--target=deployment/a",
    ),
    "CPA's flags and values apart": (
        IMAGE,
        ["--target", "deployment/a", "--configmap", "b c"],
        f"{PROPORTIONAL}|--target|deployment/a|--configmap|b c",
    ),
    "CPVA's path as the command": ("cpvpa", README_OF_CPVA, "|".join([CPVA, *README_OF_CPVA])),
    "CPVA's path as the first argument": (IMAGE, ["/cpvpa", "--target=a/b"], f"{CPVA}|--target=a/b"),
    "CPVA's flags alone": (
        IMAGE,
        ["--config-file", "/c", "--target", "deployment/a"],
        f"{CPVA}|--config-file|/c|--target|deployment/a",
    ),
    "addon-resizer's path as the command": ("pod_nanny", EXAMPLE_OF_NANNY, "|".join([NANNY, *EXAMPLE_OF_NANNY])),
    "addon-resizer's path as the first argument": (IMAGE, ["/pod_nanny", "--cpu=1"], f"{NANNY}|--cpu=1"),
    "addon-resizer's flags alone": (IMAGE, EXAMPLE_OF_NANNY, "|".join([NANNY, *EXAMPLE_OF_NANNY])),
    "one of CPA's flags": (IMAGE, ["--target=deployment/a"], f"{SERVE_OURS}|--target=deployment/a"),
    "flags that only begin as CPA's": (
        IMAGE,
        ["--targets=a", "--configmaps=b"],
        f"{SERVE_OURS}|--targets=a|--configmaps=b",
    ),
    "nothing": (IMAGE, [], "tidewatch-adapter|--help"),
    "the adapter": (IMAGE, ["tidewatch-adapter", "check", "--fix"], "tidewatch-adapter|check|--fix"),
    "the recommender": (
        IMAGE,
        ["tidewatch-recommender", "run", "--config=c", "--target=x", "--configmap=y"],
        "tidewatch-recommender|run|--config=c|--target=x|--configmap=y",
    ),
}


def installed(folder: Path) -> None:
    """Put the entrypoint and its other names into a folder, with programs that print how they were started."""
    (recipe,) = [rest for rest in all_of("RUN") if rest.startswith("printf")]
    script, *rest = recipe.split("&&")
    assert script.rstrip().endswith(">/tidewatch")
    command = script.replace("/opt/tidewatch/bin", str(folder)).replace(">/tidewatch", ">tidewatch")
    others = [command, *(each.replace(" /", " ") for each in rest)]
    subprocess.run(["/bin/sh", "-ec", "\n".join(others)], check=True, cwd=folder)
    for name in PROJECT["project"]["scripts"]:
        (folder / name).write_text('#!/bin/sh\nprintf "%s" "${0##*/}"; for each; do printf "|%s" "$each"; done\n')
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(("name", "arguments", "runs"), STARTS.values(), ids=STARTS)
def test_the_image_starts_the_program_that_is_meant(tmp_path: Path, name: str, arguments: list[str], runs: str) -> None:
    installed(tmp_path)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [str(tmp_path / name), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert done.stdout == runs


@pytest.mark.parametrize("name", ["cluster-proportional-autoscaler", "cpvpa", "pod_nanny"])
def test_an_image_of_the_adapter_alone_names_the_image_with_the_recommender(tmp_path: Path, name: str) -> None:
    installed(tmp_path)
    (tmp_path / "tidewatch-recommender").unlink()
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [tmp_path / name, "--target=a/b"], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2
    assert done.stderr == (
        "tidewatch: this image has no tidewatch-recommender: use the one that is built without --target\n"
    )


def test_the_entrypoint_is_the_script() -> None:
    assert all_of("ENTRYPOINT") == ['["/tidewatch"]']
