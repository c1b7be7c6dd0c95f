"""Runs a stand-in for an HTTP server in another process, whose work is not counted."""

from __future__ import annotations

import multiprocessing
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from demo.machine.http_answers import AnswerHandler


@contextmanager
def separate_answers(handler: Callable[..., AnswerHandler], content: object) -> Iterator[str]:
    """Answer requests by a handler, whose first argument is `content`, in another process; yield the URL."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, handler, content), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(port: Connection, handler: Callable[..., AnswerHandler], content: object) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, content))
    port.send(server.server_port)
    server.serve_forever()
