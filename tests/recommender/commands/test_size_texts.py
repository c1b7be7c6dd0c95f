"""Names in Prometheus may be any text: outputs of `sizes` never control terminals or spreadsheets."""

from __future__ import annotations

import csv
import io

import pytest

from recommender.commands.sizes.size_document import as_csv
from recommender.commands.sizes.size_patches import as_patches
from recommender.commands.sizes.size_reading import Sizes
from recommender.commands.sizes.size_table import as_table
from recommender.kinds.resources.size_record import ResourceSize, SizeRecord, SizeStatus
from recommender.kinds.resources.sizing import SizingOptions
from recommender.kinds.resources.workloads import SizedWorkload
from recommender.running.usage.usage_window import SizeWindow

SIZE = ResourceSize(100, None, 40, 50, 60, 45, 55, None, -150)
NASTY = (
    "\x1b]0;title\x07", "a\nb", "a\rb", 'a"b', "a,b", "=1+1", "@SUM(1)", "+1", "-1", "\t=1", "$(touch x)", "\u202egnp"
)  # fmt: skip


def sizes_of(name: str) -> Sizes:
    workload = SizedWorkload(name, "Deployment", name)
    record = SizeRecord(workload, name, SizeStatus.OK, f"{name}: few days", 2, 3600.0, 9, 0, SIZE, SIZE)
    return Sizes(SizeWindow(0.0, 86_400.0), SizingOptions(), (record,), (f"{name} is not known",), {})


@pytest.mark.parametrize("name", NASTY)
def test_no_name_in_the_output_moves_the_cursor_or_starts_a_line(name: str) -> None:
    sizes = sizes_of(name)
    patches = as_patches(sizes)
    for text in (as_table(sizes, 80), as_table(sizes, None), as_csv(sizes), patches):
        assert all(line.isprintable() for line in text.split("\n"))
    assert all(line.startswith("#") for line in patches.split("\n"))


@pytest.mark.parametrize("name", NASTY)
def test_no_cell_of_a_csv_file_is_a_formula(name: str) -> None:
    (row,) = csv.DictReader(io.StringIO(as_csv(sizes_of(name))))
    assert all(row[column][:1] not in {"=", "+", "-", "@"} for column in ("namespace", "name", "container", "message"))
    assert row["cpu_saves_milli"] == "-150"
    assert row["kind"] == "Deployment"
