"""Every code block of the pages works: it is read, parsed or run here, or a table says why not."""

from __future__ import annotations

import json
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from adapter.commands.main import main as run_adapter
from recommender.commands.main import main as run_recommender
from tests.docs.block_classes import CLASSES, PICTURES, is_commands, is_output, is_picture, kind_of, take_commands
from tests.docs.blocks import PAGES, Block, blocks_of, commands_of
from tests.docs.documented_commands import NEEDS_MORE, NOT_RUN, PROGRAMS
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BLOCKS: Final = tuple(chain.from_iterable(map(blocks_of, PAGES)))
MAINS: Final[dict[str, Callable[[list[str]], None]]] = {
    "tidewatch-adapter": run_adapter,
    "tidewatch-recommender": run_recommender,
}


@pytest.mark.parametrize("block", [pytest.param(block, id=block.place) for block in BLOCKS])
def test_a_block_is_of_one_class_and_works(block: Block) -> None:
    found = [each for each in CLASSES if each.has(block)]
    assert [each.name for each in found][1:] == [], "more than one class"
    assert found, f"{block.place} is in no class: add one that reads, parses or runs it"
    found[0].take(block)


def test_every_class_and_every_exception_has_a_block() -> None:
    """Table entries that no page needs any more must be removed."""
    assert [each.name for each in CLASSES if not any(map(each.has, BLOCKS))] == []
    words = [words for block in BLOCKS if is_commands(block) for words in commands_of(block)]
    assert NEEDS_MORE.keys() - {first for first, *_ in words} == set()
    assert NOT_RUN.keys() - {second for first, second, *_ in words if first in PROGRAMS} <= {"run"}
    pictured = {block.place.partition(":")[0] for block in BLOCKS if is_picture(block)}
    assert pictured == PICTURES.keys()


def runnable() -> list[tuple[Block, list[str]]]:
    """Return the commands that need no cluster or Prometheus, and whose files are in the repository or on the page."""
    return [
        (block, words)
        for block in BLOCKS
        # Those of the tutorials build on each other: test_tutorials.py runs them.
        if is_commands(block) and block.page.parent.name != "tutorials"
        for words in commands_of(block)
        # These need a Prometheus or a past: tests/recommender/{commands/init,shapes} run such commands.
        if (
            words[:2] == ["tidewatch-recommender", "recommend"]
            and not {"--workload", "--recording", "--prometheus-url"} & {*words}
        )
        or (words[:2] == ["tidewatch-adapter", "check"] and "--config=config.yaml" not in words)
    ]


def cluster_of(services: int) -> str:
    """Return the cluster that the examples show: 180 nodes of 16 cores, four of them cordoned."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{index}"},
            "spec": {"unschedulable": index >= 176},
            "status": {
                "capacity": {"cpu": "16"},
                "allocatable": {"cpu": "16"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for index in range(180)
    ]
    named = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{index}", "namespace": "shop"}}
        for index in range(services)
    ]
    coredns = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system"},
        "spec": {"replicas": 3},
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *named, coredns]})


def files_of(page: Path, folder: Path) -> Path:
    """Return the folder where a page's commands run, with the examples, the page's files (`# NAME`) and the cluster."""
    shown = [block for block in blocks_of(page) if block.text.startswith("# recommender.yaml\n")]
    if not shown:
        return CHECKOUT / "docs" / "examples" / page.stem
    (folder / "recommender.yaml").write_text(shown[0].text)
    (folder / "cluster.json").write_text(cluster_of(7300 if "services" in shown[0].text else 0))
    for name in ("docs", "rules"):
        (folder / name).symlink_to(CHECKOUT / name)
    return folder


@pytest.mark.parametrize(
    ("block", "words"), [pytest.param(block, words, id=block.place) for block, words in runnable()]
)
def test_a_command_runs_and_prints_what_the_page_shows(
    block: Block,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program, *arguments = words
    in_checkout = any((CHECKOUT / word).exists() for word in arguments)
    monkeypatch.chdir(CHECKOUT if in_checkout else files_of(block.page, tmp_path))
    with pytest.raises(SystemExit) as ended:
        MAINS[program](arguments)
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed
    later = [each for each in BLOCKS if each.page == block.page and each.line > block.line and is_output(each)]
    if later and not in_checkout:
        assert printed == later[0].text


def test_the_sidecar_is_the_same_on_every_page() -> None:
    sidecars = [
        container
        for block in BLOCKS
        if block.language == "yaml" and kind_of(block) == "Deployment"
        for container in yaml.safe_load(block.text)["spec"]["template"]["spec"].get("initContainers", [])
    ]
    assert len(sidecars) > 1
    assert all(each == sidecars[0] for each in sidecars)


def test_a_request_to_a_server_that_has_just_been_started_waits_until_it_listens() -> None:
    hasty = [
        block.place
        for block in BLOCKS
        if is_commands(block)
        for started, asked in pairwise(commands_of(block))
        if started[-1] == "&" and asked[0] == "curl" and "--retry-connrefused" not in asked
    ]
    assert hasty == []


def test_a_broken_block_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n    tidewatch-adapter check --cofnig rules\n\n```yaml\nkind: Unheard\n```\n")
    command, document = blocks_of(page)
    assert [block.line for block in (command, document)] == [3, 5]
    assert not any(each.has(Block(CHECKOUT / "README.md", 1, "yaml", document.text)) for each in CLASSES)
    with pytest.raises(Exception, match="cofnig"):
        take_commands(command)
