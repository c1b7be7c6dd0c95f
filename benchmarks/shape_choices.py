"""`python -m benchmarks.shape_choices`: how far the chosen machine shapes are from the best ones.

Generated catalogues have so few shapes that every set can be packed, and the sets that the search of `recommend
--shapes` chooses are compared with the cheapest of all sets. Catalogues of many shapes are compared with the lower
bound of their linear program.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING, Final

from benchmarks.made_past import START, pod_kind
from benchmarks.options import command_line
from benchmarks.report import as_json, as_text, report
from recommender.shapes.catalogue import candidate, read_catalogue
from recommender.shapes.choice import MachineChoice, cheapest_machines
from recommender.shapes.peaks import History, Peak

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Row
    from recommender.kinds.cluster_size.model.groups import NodeGroup

NAME: Final = "shape_choices"
_HEAD: Final = "apiVersion: tidewatch.io/v1alpha1\nkind: MachineShapeCatalogue\nshapes:\n"
_CORES: Final = (2, 4, 8, 16, 32, 48, 64)
_GIB_A_CORE: Final = (2, 4, 8)
_DOLLARS_A_CORE: Final = 0.03
_DOLLARS_A_GIB: Final = 0.004
_WORKLOADS: Final = 8
_LEAST_GAP: Final = 1e-9


@dataclass(frozen=True, slots=True)
class _Gaps:
    """How much more choices cost than their references, as ratios."""

    found: tuple[float, ...]

    def row(self, case: str, shapes: int, seconds: float) -> Row:
        """Return a row of the report."""
        return {
            "case": case,
            "shapes": shapes,
            "catalogues": len(self.found),
            "equal": sum(gap <= _LEAST_GAP for gap in self.found),
            "mean_ratio": round(sum(self.found) / len(self.found), 4),
            "worst_ratio": round(max(self.found), 4),
            "cpu_seconds": round(seconds, 1),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose shapes of generated catalogues; print a row for each kind of comparison."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--catalogues", type=int, default=20, help="catalogues of 8 shapes")
    parser.add_argument("--large", type=int, default=5, help="catalogues of 200 shapes")
    parser.add_argument("--pods", type=int, default=40, help="pods of each peak")
    values = parser.parse_args(arguments)
    rows = [_small(values.catalogues, values.pods, most) for most in (2, 3)]
    rows += [_large(values.large, values.pods)] if values.large else []
    found = report(NAME, rows)
    print(as_json(found) if values.output == "json" else as_text(found))
    return 0


def _small(catalogues: int, pods: int, most: int, shapes: int = 8) -> Row:
    began = time.process_time()
    gaps = []
    for seed in range(catalogues):
        history, groups = made_history(seed, pods), made_groups(seed, shapes)
        gaps.append(_cost(history, groups, most) / best_cost(history, groups, most) - 1)
    return _Gaps(tuple(gaps)).row(f"beside all sets of {most}", shapes, time.process_time() - began)


def _large(catalogues: int, pods: int, shapes: int = 200) -> Row:
    began = time.process_time()
    gaps = []
    for seed in range(catalogues):
        found = _choice(made_history(seed, pods), made_groups(seed, shapes), 3)
        gaps.append(found.cost / found.bound - 1)
    return _Gaps(tuple(gaps)).row("beside the lower bound, sets of 3", shapes, time.process_time() - began)


def best_cost(history: History, groups: Sequence[NodeGroup], most: int) -> float:
    """Return the cost of the cheapest of all sets; each set is tried as a catalogue of its own."""
    found = (cheapest_machines(history, each, most) for each in combinations(groups, min(most, len(groups))))
    return min(one.cost for one in found if isinstance(one, MachineChoice))


def _cost(history: History, groups: Sequence[NodeGroup], most: int) -> float:
    return _choice(history, groups, most).cost


def _choice(history: History, groups: Sequence[NodeGroup], most: int) -> MachineChoice:
    found = cheapest_machines(history, groups, most)
    assert isinstance(found, MachineChoice), "every shape holds every pod"
    return found


def made_groups(seed: int, shapes: int) -> list[NodeGroup]:
    """Return shapes whose prices roughly follow their resources."""
    random = Random(seed)
    lines = []
    for number in range(shapes):
        cores, gib = random.choice(_CORES), random.choice(_GIB_A_CORE)
        price = cores * (_DOLLARS_A_CORE + gib * _DOLLARS_A_GIB) * random.uniform(0.8, 1.25)
        lines.append(
            f"- {{name: m{number}, price: {price:.4f}, template: {{cpu: {cores}, memory: {cores * gib}Gi}}}}\n"
        )
    catalogue = read_catalogue(_HEAD + "".join(lines), "shapes.yaml")
    return [candidate(shape, ()) for shape in catalogue.shapes]


def made_history(seed: int, pods: int) -> History:
    """Return two peaks of the same workloads, each with different numbers of pods."""
    random = Random(-seed - 1)
    asked = [(random.randrange(100, 1800, 50), random.randrange(128, 3600, 64)) for _ in range(_WORKLOADS)]
    peaks = []
    for peak in range(2):
        shares = [random.random() for _ in asked]
        counts = [max(1, round(pods * share / sum(shares))) for share in shares]
        numbers = [number for number, count in enumerate(counts) for _ in range(count)]
        kinds = (pod_kind(f"web-{number}", asked[number]) for number in numbers)
        peaks.append(Peak(START, (), tuple(replace(each, name=f"{peak}-{at}") for at, each in enumerate(kinds))))
    return History("made", tuple(peaks), tuple(pod for peak in peaks for pod in peak.pods), ())


if __name__ == "__main__":
    raise SystemExit(main())
