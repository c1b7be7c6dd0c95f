"""A kind is one folder and one line in a table, by which reading, the loop, memory, page, JSON and metrics know it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from jinja2 import DictLoader

from adapter.foundation.time.clock import Clock
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs
from recommender.decisions.publication import Publication
from recommender.decisions.record import Status
from recommender.kinds.table import KINDS, all_kinds
from recommender.outputs.metrics import RecommendationMetrics
from recommender.page.rendering import PageRenderer
from recommender.printed.document import recommendation_list
from recommender.printed.table import as_text
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.polls.poll_decisions import PollDecisions
from tests.recommender.configuration.files import entry, whole
from tests.recommender.kinds.toy.kind import ToyKind, ToyMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.decisions.record import Record

NOW = 1_800_000_000.0
PAGE = """{% macro value(record) %}{% endmacro %}{% macro tail(record) %}{% endmacro %}
{% macro head(record, now) %}<p>The lucky number is {{ record.details.number }}.</p>{% endmacro %}"""


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    toy = ToyKind()
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "toy", lambda: toy)
        yield


def polled(folder: Path, *lines: str, value: str = "3") -> Record:
    """Return the record of a poll by a process that has just started."""
    configuration = read_configuration(whole(entry("lucky", *lines, kind=f"toy: {value}")), "r.yaml")
    assert not configuration.refused
    memories = Memories(FolderMemoryStore(folder))
    decisions = PollDecisions(memories, Clock())
    [found] = decisions.decide(plan_of(configuration), Inputs(), NOW)
    assert found.memory is not None
    memories.remember(found.name, found.memory)
    [decision] = found.decisions
    return decision.record


def test_a_toy_kind_is_read_strictly() -> None:
    [refused] = read_configuration(whole(entry("lucky", kind="toy: many")), "r.yaml").refused
    assert "'many' is not a whole number" in str(refused.problems[0])
    [both] = read_configuration(whole(entry("lucky", "proportional: {}", kind="toy: 3")), "r.yaml").refused
    assert "proportional and toy are both in one recommendation" in str(both.problems)


def test_a_toy_kind_is_decided_braked_and_remembered_over_a_restart(tmp_path: Path) -> None:
    assert [polled(tmp_path).replicas for _ in range(3)] == [4, 5, 6]
    assert polled(tmp_path, "maxStep: 2", value="90").replicas == 8
    paused = polled(tmp_path, "paused: true")
    assert (paused.status, paused.replicas) == (Status.HELD, 8)
    own = Memories(FolderMemoryStore(tmp_path)).load("lucky").own
    assert own == ToyMemory(5)


def test_a_toy_kind_is_shown_in_metrics_json_text_and_page(tmp_path: Path) -> None:
    record = polled(tmp_path)
    publication = Publication(leads=True, time=NOW, valid_until=math.inf, records=(record,))
    metrics = RecommendationMetrics(lambda: True, all_kinds(), lambda: NOW)
    metrics.publish(publication)
    assert b'\ntidewatch_luck{name="lucky"} 4.0\n' in metrics.text()
    assert '"luck":4' in msgspec.json.encode(recommendation_list([record], NOW)).decode()
    assert "4 replicas" in as_text([record])
    renderer = PageRenderer("1.2.3", (DictLoader({"toy.html": PAGE}),))
    page = renderer.page(publication, lambda _: ())
    assert "The lucky number is 4." in page
    assert "3 + 1" in page


def test_a_toy_kind_has_at_most_60_lines() -> None:
    assert len(Path(__file__).with_name("kind.py").read_text().splitlines()) <= 60
