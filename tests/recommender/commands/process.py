"""`tidewatch-recommender` as a process, seen from outside: its page, its API, its metrics, its log."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.machine.processes import ManagedProcess, start
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = str(Path(sys.executable).with_name("tidewatch-recommender"))


@dataclass(frozen=True, slots=True)
class Recommender:
    """A running program."""

    process: ManagedProcess

    @property
    def log(self) -> str:
        return self.process.log_path.read_text()

    def get(self, path: str, *, plain: bool = False) -> tuple[int, str, dict[str, str]]:
        pattern = r"metrics and health are served address=(\S+)" if plain else r" serving address=http://(\S+)"
        address = until(lambda: "".join(re.findall(pattern, self.log)[-1:]), 30.0)
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), dict(error.headers)

    def items(self) -> dict[str, dict[str, Any]]:
        status, text, _ = self.get("/api/v1/recommendations")
        return {item["name"]: item for item in json.loads(text)["items"]} if status == 200 else {}

    def metric(self, series: str) -> str | None:
        found = re.search(rf"^{re.escape(series)} (\S+)$", self.get("/metrics", plain=True)[1], re.MULTILINE)
        return found[1] if found else None


@contextmanager
def running(command: str, *flags: str, log_path: Path) -> Iterator[Recommender]:
    """Run a command on free ports, in the folder of its log; it is stopped at the end of the block."""
    arguments = [PROGRAM, command, *flags, "--port=0", "--plain-bind-address=127.0.0.1:0"]
    environment = {"no_proxy": "*", "POD_NAMESPACE": "monitoring"}
    with start(
        arguments, log_path=log_path, name="recommender", environment=environment, folder=log_path.parent
    ) as process:
        yield Recommender(process)
