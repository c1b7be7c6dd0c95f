from __future__ import annotations

import ast
import io
from pathlib import Path

import msgspec
import pytest

import benchmarks
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.progress import Progress
from benchmarks.report import as_json, as_text, from_json, report, table


def test_a_report_is_what_checks_read() -> None:
    document = msgspec.json.decode(as_json(report("adapter_load", [{"load": "pods", "p50_ms": 0.5}], prometheus="2")))
    assert document["apiVersion"] == "tidewatch.io/v1alpha1"
    assert document["kind"] == "BenchmarkReport"
    assert document["name"] == "adapter_load"
    assert document["rows"] == [{"load": "pods", "p50_ms": 0.5}]
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["prometheus"] == "2"


def test_a_report_can_be_read_back() -> None:
    found = report("plan_proof", [{"wrong": 0, "note": None}])
    assert from_json(as_json(found)) == found


def test_the_text_has_the_machine_and_every_value() -> None:
    text = as_text(report("x", [{"load": "pods", "rate": 1234.5, "errors": 0, "good": True, "max_ms": None}]))
    assert "python" in text
    assert text.splitlines()[3:] == ["load     rate  errors  good  max_ms", "pods  1,234.5       0  yes        -"]


def test_a_table_that_is_too_wide_is_turned() -> None:
    row = {f"a_rather_long_key_{number}": number for number in range(10)}
    lines = table([row, row]).splitlines()
    assert len(lines) == 10
    assert lines[3].split() == ["a_rather_long_key_3", "3", "3"]


def test_no_rows_are_an_empty_table() -> None:
    assert table([]) == ""


def test_progress_without_a_terminal_is_plain_lines() -> None:
    stream = io.StringIO()
    progress = Progress("bench", stream)
    progress.say("a step")
    progress.wait_until(0.0, "waiting")
    assert stream.getvalue() == "bench: a step\n"


def test_make_bench_runs_every_benchmark_there_is() -> None:
    folder = Path(benchmarks.__file__).parent
    with_report = {path.stem for path in folder.glob("*.py") if "NAME" in _constants(path)}
    assert with_report == BENCHMARKS.keys()


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["adapter-load"])
    assert end.value.code == 2
    assert "adapter_load" in capsys.readouterr().err


def _constants(path: Path) -> set[str]:
    """Return the names that are assigned at a module's top level."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names
