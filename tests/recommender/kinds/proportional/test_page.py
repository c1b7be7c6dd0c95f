"""The examples of docs/proportional.md can be read, and have the results that the page states."""

from __future__ import annotations

import re
from typing import Final

import pytest

from adapter.foundation.documents.load import load_documents
from recommender.kinds.proportional.parameters import ProportionalSettings
from recommender.kinds.proportional.reading.proportional_reader import PROPORTIONAL
from tests.recommender.kinds.proportional.clusters import calculated, inputs_of, node, nodes_of, step_texts
from tests.support.checkout import CHECKOUT

PAGE: Final = (CHECKOUT / "docs" / "proportional.md").read_text(encoding="utf-8")
EXAMPLES: Final = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def read(text: str) -> ProportionalSettings:
    root = load_documents(text, "docs/proportional.md").root
    assert root is not None
    return PROPORTIONAL.read(root)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_can_be_read(text: str) -> None:
    assert read(text) != ProportionalSettings()


def test_the_first_example_has_the_documented_steps() -> None:
    calculation = calculated(read(EXAMPLES[0]), inputs_of(nodes_of(176, 2816, 180, 2880)))
    rows = [f"| `{step.step}` | {step.value:g} | `{step.detail}` |" for step in calculation.steps]
    assert "\n".join(rows) in PAGE


def test_the_ladder_example_has_the_expected_steps() -> None:
    steps = step_texts(calculated(read(EXAMPLES[1]), inputs_of(nodes_of(100, 400))))
    assert steps[:2] == ["ladder/nodes 2: rung [2, 2] for 100", "ladder/cores 3: rung [64, 3] for 400"]


def test_the_interpolated_example_has_the_documented_value() -> None:
    step = calculated(read(EXAMPLES[2]), inputs_of(nodes_of(100, 65))).steps[0]
    assert f"65 cores give\n`{step.detail}`, which is {step.value:g}." in PAGE


@pytest.mark.parametrize(("cpu_milli", "cores", "replicas"), [(3920, 392, 49), (4000, 400, 50)])
def test_the_documented_table_of_allocatable_cores_is_correct(cpu_milli: int, cores: int, replicas: int) -> None:
    calculation = calculated(read("linear: {coresPerReplica: 8}"), inputs_of([node(cpu_milli=cpu_milli)] * 100))
    assert (calculation.inputs["cores"], calculation.replicas) == (cores, replicas)
    assert f"| {cores} | {replicas} |" in PAGE
