"""`tidewatch-recommender run --validate` prints a line for each problem, and a last line that fits the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recommender.commands.run.command import run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nrecommendations:\n"
ENTRY = """- name: {name}
  proportional: {{linear: {{nodesPerReplica: 2}}}}
  targets: [{{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: {target}}}]
  outputs: [scale]
"""


@pytest.mark.parametrize(
    ("targets", "status", "line"),
    [
        (("web", "api"), 0, "2 of 2 recommendations can be used"),
        (("web", "web"), 1, "2 of 2 recommendations can be used; problems to correct: 1"),
    ],
    ids=["right", "one target in two entries"],
)
def test_the_last_line_agrees_with_the_status(
    targets: tuple[str, str], status: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    entries = [ENTRY.format(name=name, target=target) for name, target in zip("ab", targets, strict=True)]
    path.write_text(HEAD + "".join(entries))
    with pytest.raises(SystemExit) as end:
        run(["--config", str(path), "--validate"])
    assert end.value.code == status
    assert capsys.readouterr().out == f"{path}: {line}\n"


@pytest.mark.parametrize("timezone", ["", "timezone: Europe/Berlin"])
def test_a_load_without_a_time_zone_is_reported_to_use_utc(
    timezone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(
        "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nprometheus: {url: http://prometheus:9090}\n"
        "recommendations:\n- name: chat\n"
        f"  predictive: {{load: sum(x), loadPerReplica: 1, horizon: 2m, {timezone}}}\n"
        "  targets: [{apiVersion: apps/v1, kind: Deployment, namespace: chat, name: gateway}]\n  outputs: [metric]\n"
    )
    with pytest.raises(SystemExit) as end:
        run(["--config", str(path), "--validate"])
    assert end.value.code == 0
    line = f"{path}:5: recommendation chat: days and weeks of its load are those of UTC, since it has no `timezone`\n"
    assert capsys.readouterr().out == ("" if timezone else line) + f"{path}: 1 of 1 recommendations can be used\n"
