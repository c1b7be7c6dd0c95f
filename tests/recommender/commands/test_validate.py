"""`tidewatch-recommender run --validate`: a line for each problem, and a last line that agrees with the status."""

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
    ("targets", "status", "said"),
    [
        (("web", "api"), 0, "2 of 2 recommendations can be used"),
        (("web", "web"), 1, "2 of 2 recommendations can be used; problems to correct: 1"),
    ],
    ids=["right", "one target in two entries"],
)
def test_the_last_line_agrees_with_the_status(
    targets: tuple[str, str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    entries = [ENTRY.format(name=name, target=target) for name, target in zip("ab", targets, strict=True)]
    path.write_text(HEAD + "".join(entries))
    with pytest.raises(SystemExit) as end:
        run(["--config", str(path), "--validate"])
    assert end.value.code == status
    assert capsys.readouterr().out == f"{path}: {said}\n"
