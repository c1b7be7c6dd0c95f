"""Choices of models survive a restart; a file that cannot be used is ignored."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.choice.evidence import by_rate, paired_weights
from recommender.kinds.predictive.choice.series_proof import ProvenSeries, proof_of
from recommender.kinds.predictive.choice.weights import BILL
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.running.loads.histories.target_loads import target_of
from recommender.running.loads.learned.forecast_tasks import task_of
from recommender.running.loads.learned.model_choice_files import OLDEST_SECONDS, LearnedFiles
from recommender.running.loads.learned.model_choices import Learned
from recommender.running.loads.predictions.delay_measurement import DelayMeter
from tests.recommender.running.loads.load_harness import FOR_EACH, need

if TYPE_CHECKING:
    from pathlib import Path

    from recommender.running.loads.histories.target_loads import Target

SHOP = need("load")
NOW = 1_700_000_000.0
WEIGHTS, SIZES, AGES = [0.25, 0.7, 0.05], [0.4, 1.2, 0.0], [2_000.0, 1_700.0, 0.0]
EVIDENCE = by_rate(paired_weights(np.array(WEIGHTS)))
VERDICTS: dict[Target, SeriesVerdict] = {
    None: SeriesVerdict("headroom", "headroom until …", Blend(0.1)),
    target_of({"namespace": "a", "deployment": "b"}, FOR_EACH): SeriesVerdict(
        "seasonal",
        "auto: seasonal leads",
        Blend(0.31, (Part("seasonal", 0.7, 1.2), Part("conformal", 0.25, 0.4))),
        Bill(0.31, 0.4),
        {"seasonal": 0.4, "linear": None},
        "in the last day …",
        proof_of(
            ("conformal", "seasonal"),
            ProvenSeries(
                2_833_333.0,
                600.0,
                3_000.0,
                BILL,
                0.31,
                144.0,
                np.array([0.3, 40.0, 8.0, 50.0, 9.5]),
                np.concatenate([[WEIGHTS, SIZES, WEIGHTS, SIZES, AGES], EVIDENCE, EVIDENCE]),
            ),
        ),
    ),
}


def saved(folder: Path) -> Path:
    learned = Learned(task_of(SHOP, DelayMeter().delays(SHOP)), verdicts=VERDICTS)
    LearnedFiles(folder / "loads", lambda: NOW).save(SHOP, learned)
    (path,) = (folder / "loads").iterdir()
    return path


def test_verdicts_are_restored_as_they_were(tmp_path: Path) -> None:
    saved(tmp_path)
    assert LearnedFiles(tmp_path / "loads", lambda: NOW + 60.0).restore(SHOP) == VERDICTS


def test_there_are_no_verdicts_without_a_file(tmp_path: Path) -> None:
    assert LearnedFiles(tmp_path / "loads", lambda: NOW).restore(SHOP) == {}


@pytest.mark.parametrize("age", [-1.0, OLDEST_SECONDS + 1.0])
def test_verdicts_that_are_too_old_or_from_the_future_are_not_used_and_this_is_logged(
    tmp_path: Path, age: float, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path)
    assert LearnedFiles(tmp_path / "loads", lambda: NOW + age).restore(SHOP) == {}
    assert "stored choices of models are not used" in caplog.text


def test_verdicts_for_another_configuration_are_not_used(tmp_path: Path) -> None:
    saved(tmp_path)
    other = replace(SHOP, settings=replace(SHOP.settings, quantile=0.9))
    assert LearnedFiles(tmp_path / "loads", lambda: NOW).restore(other) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [('"version":2', '"version":3'), ("0.7", "7.0"), ("0.31", "-1"), ("}", ""), ("{", "[[[["), ('"model"', '"x"')],
)
def test_a_damaged_file_is_ignored(tmp_path: Path, before: str, after: str, caplog: pytest.LogCaptureFixture) -> None:
    path = saved(tmp_path)
    content = path.read_text()
    assert before in content
    path.write_text(content.replace(before, after, 1))
    assert LearnedFiles(tmp_path / "loads", lambda: NOW).restore(SHOP) == {}
    assert "stored choices of models are not used" in caplog.text


@pytest.mark.parametrize("damage", ['"values":7', '"values":"!"', '"values":"AAAA"', '"values":""', '"numbers":""'])
def test_a_damaged_proof_is_dropped_but_its_verdict_is_kept(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = saved(tmp_path)
    path.write_text(re.sub('"values":"[^"]*"', damage, path.read_text()))
    found = LearnedFiles(tmp_path / "loads", lambda: NOW).restore(SHOP)
    assert found == {target: replace(verdict, proof=None) for target, verdict in VERDICTS.items()}
    assert "stored proofs of models are damaged or of an earlier build" in caplog.text


def test_a_file_of_the_version_without_proofs_is_read_and_rewritten(tmp_path: Path) -> None:
    path = saved(tmp_path)
    former = re.sub(',"proof":{[^}]*}', "", path.read_text()).replace('"version":2', '"version":1')
    path.write_text(former)
    files = LearnedFiles(tmp_path / "loads", lambda: NOW)
    found = files.restore(SHOP)
    assert found == {target: replace(verdict, proof=None) for target, verdict in VERDICTS.items()}
    files.save(SHOP, Learned(task_of(SHOP, DelayMeter().delays(SHOP)), verdicts=found))
    assert '"version":2' in path.read_text()


def test_an_unwritable_folder_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "loads").write_text("no folder")
    files = LearnedFiles(tmp_path / "loads", lambda: NOW)
    learned = Learned(task_of(SHOP, DelayMeter().delays(SHOP)), verdicts=VERDICTS)
    files.save(SHOP, learned)
    files.save(SHOP, learned)
    assert len(caplog.records) == 1
