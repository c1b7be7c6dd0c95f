"""The Lease is released once no write can have an effect any more, and no earlier."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.errors import FencedError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence, Reply
from recommender.commands.run.leading import release_after_writes
from recommender.running.effects.writes_at_shutdown import Writes

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/apis/apps/v1/namespaces/shop/deployments/web/scale"


@dataclass
class Server:
    """An API server whose PUT hangs until it is released, and may then lose the answer."""

    begun: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    loses_answers: bool = False
    written: int = 0

    def get(self, path: str, *, seconds: float) -> Reply:
        raise AssertionError(path, seconds)

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        raise AssertionError(collection, document, seconds)

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        self.begun.set()
        assert self.released.wait(10)
        if self.loses_answers:
            raise UnknownOutcomeError(f"PUT {path}: {document} {fence}")
        self.written += 1
        return {}


@dataclass
class Lease:
    """Records how many writes had ended when the Lease was released."""

    server: Server
    ended: list[int] = field(default_factory=list)

    def release(self, seconds: float) -> bool:
        assert seconds > 0
        self.ended.append(self.server.written)
        return True


def fence(seconds: float = 2.0) -> Fence:
    return Fence(seconds, lambda _: True)


def test_the_lease_is_kept_until_the_write_in_progress_has_ended() -> None:
    server = Server()
    writes, lease = Writes(server), Lease(server)
    writing = threading.Thread(target=lambda: writes.replace(PATH, {}, fence()), daemon=True)
    writing.start()
    assert server.begun.wait(10)
    stopping = threading.Thread(target=lambda: release_after_writes(writes, lease.release), daemon=True)
    stopping.start()
    stopping.join(0.05)
    assert lease.ended == []
    server.released.set()
    stopping.join(10)
    assert lease.ended == [1]


def test_no_write_starts_after_shutdown_began() -> None:
    writes = Writes(Server())
    assert writes.close(1.0)
    with pytest.raises(FencedError, match="about to end"):
        writes.replace(PATH, {}, fence())


def test_a_write_with_unknown_outcome_counts_as_in_progress_while_the_server_may_still_apply_it() -> None:
    server = Server(loses_answers=True)
    server.released.set()
    now = 0.0
    writes = Writes(server, lambda: now)
    with pytest.raises(UnknownOutcomeError):
        writes.replace(PATH, {}, fence(2.0))
    now = 2.9
    assert not writes.close(0.0)
    now = 3.0
    assert writes.close(0.0)
