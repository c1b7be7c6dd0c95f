"""Failures that a test scripts for the stand-in for kube-apiserver, and the requests that it received."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

HANG_SECONDS = 60.0


Mishap: TypeAlias = Literal["status", "cut", "hang", "silence", "garbage", "lost", "drip"]


@dataclass
class Fault:
    """Something that goes wrong with the next requests of a verb.

    Attributes:
        verb: `list`, `watch`, `stream` (a watch that begins with the current objects), `discover`, the plural of a kind
            of review; of single objects `get`, `create`, `update`, `patch`, `delete`.
        what: `status`: an error answer; `cut`: the connection is lost in the middle of the answer; `hang`: no answer at
            all, and nothing is done; `silence`: headers, then nothing, as on a connection that died; `garbage`: `body`
            as the answer; of single objects also `lost`: done, and the connection is lost before the answer; `drip`:
            done, and the answer comes slowly, byte by byte, its head included.
        code, headers: of the answer, for `status`.
        times: how many requests it hits.
        skip: how many requests it lets pass before.
    """

    verb: str
    what: Mishap
    code: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"<html>no server is available to handle this request</html>"
    times: int = 1
    skip: int = 0


@dataclass(frozen=True)
class Asked:
    """A request as it was received."""

    verb: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
