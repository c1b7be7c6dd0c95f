"""An installation without numpy, as in the image of the adapter alone, refuses only `nodes`."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_NUMPY = """\
import sys
from importlib.machinery import PathFinder


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "numpy" else super().find_spec(name, path, target)


sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from adapter.commands.main import main
main(sys.argv[1:])
"""


def without_numpy(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_NUMPY, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_nodes_names_the_missing_package() -> None:
    ended = without_numpy("nodes", "--prometheus-url=http://127.0.0.1:9", "--port=0", "--bind-address=127.0.0.1")
    assert ended.returncode == 2
    assert ended.stderr == (
        "tidewatch-adapter: nodes needs the Python package numpy, which this installation does not have: "
        "use the image with all parts, or run pip install tidewatch\n"
    )


def test_help_works_without_the_package() -> None:
    assert without_numpy("nodes", "--help").returncode == 0
