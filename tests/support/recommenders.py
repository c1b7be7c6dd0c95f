"""A recommender that runs as a process of its own, and what it answers."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from demo.machine.processes import ManagedProcess, start
from tests.support import forked
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM: Final = str(Path(sys.executable).with_name("tidewatch-recommender"))
_FREE_PORTS: Final = ("--port=0", "--plain-bind-address=127.0.0.1:0")
_LISTENING_SECONDS: Final = 30.0
_ANSWER_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Recommender:
    """A running program."""

    process: ManagedProcess

    @property
    def log(self) -> str:
        return self.process.log_path.read_text()

    def address(self, *, plain: bool = False) -> str:
        """Return the address of the page, or that of metrics and health."""
        pattern = r"metrics and health are served address=(\S+)" if plain else r" serving address=http://(\S+)"

        def last() -> str:
            assert self.process.is_running, f"it has ended:\n{self.process.log_tail()}"
            # A program that is started again goes on in the same log.
            return "".join(re.findall(pattern, self.log)[-1:])

        return until(last, _LISTENING_SECONDS)

    def get(self, path: str, *, plain: bool = False) -> tuple[int, str, dict[str, str]]:
        """Return status, text and headers of an answer."""
        try:
            with urllib.request.urlopen(f"http://{self.address(plain=plain)}{path}", timeout=_ANSWER_SECONDS) as answer:
                return answer.status, answer.read().decode(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), dict(error.headers)

    def items(self) -> dict[str, dict[str, Any]]:
        """Return the recommendations by name; none while another process leads."""
        status, text, _ = self.get("/api/v1/recommendations")
        return {item["name"]: item for item in json.loads(text)["items"]} if status == 200 else {}

    def metric(self, series: str) -> str | None:
        """Return the value of a series, spelled as `/metrics` spells it; None if there is no such series."""
        found = re.search(rf"^{re.escape(series)} (\S+)$", self.get("/metrics", plain=True)[1], re.MULTILINE)
        return found[1] if found else None


def started(log_path: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Recommender:
    """Start the installed program on free ports of the loopback interface, in the folder of its log.

    The program's process is a context manager.
    """
    command = [PROGRAM, *arguments, *_FREE_PORTS]
    return Recommender(
        start(command, log_path=log_path, name="recommender", environment=environment, folder=log_path.parent)
    )


def forked_recommender(log_path: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Recommender:
    """Start the program in the same way, in a process that has imported everything (`tests.support.forked`)."""
    process = forked.start(
        forked.RECOMMENDER,
        *arguments,
        *_FREE_PORTS,
        log_path=log_path,
        name="recommender",
        environment=environment,
        folder=log_path.parent,
    )
    return Recommender(process)
