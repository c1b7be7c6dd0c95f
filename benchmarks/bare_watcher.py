"""The floor: reads the same watch of nodes and does nothing with it: `python -m benchmarks.bare_watcher PORT`."""

from __future__ import annotations

import http.client
import sys

WINDOW_SECONDS = 3600


def main(port: int) -> None:
    """Read until the process is ended."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"/api/v1/nodes?watch=true&timeoutSeconds={WINDOW_SECONDS}")
    answer = connection.getresponse()
    while answer.readline():
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
