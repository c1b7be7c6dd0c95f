"""A small extension API server in a pod: it reports its caller, the pod that answers, and the pod's environment.

It shows that the suite's network, volumes and aggregation work, independently of the product.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

GROUP: Final = "e2e.tidewatch.io"
PORT: Final = 6443
SERVING: Final = Path("/etc/extension/serving")
SETTINGS: Final = Path("/etc/extension/settings")
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_BASE: Final = f"/apis/{GROUP}/v1"
_RESOURCE: Final = {"name": "pods", "singularName": "", "namespaced": False, "kind": "Pod", "verbs": ["get"]}


def _report(headers: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Success",
        "pod": os.environ["HOSTNAME"],
        "user": os.geteuid(),
        "remote": sorted(header for header in headers if header[0] in ("X-Remote-User", "X-Remote-Group")),
        "settings": {path.name: path.read_text() for path in sorted(SETTINGS.glob("[!.]*"))},
        "account": {path.name: path.read_text() for path in sorted(ACCOUNT.glob("[!.]*"))},
        "environment": dict(os.environ),
        "writable": [folder for folder in ("/", "/tmp", "/etc/extension/settings") if os.access(folder, os.W_OK)],
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/readyz":
            self._answer(200, {})
        elif self.path.startswith(f"{_BASE}/pods"):
            self._answer(200, _report(self.headers.items()))
        elif self.path == _BASE:
            resources = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1"}
            self._answer(200, {**resources, "resources": [_RESOURCE]})
        else:
            self._answer(404, {})

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until SIGTERM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SERVING / "tls.crt", SERVING / "tls.key")
    server = ThreadingHTTPServer(("0.0.0.0", PORT), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    sys.stderr.write(f"listening on {PORT}\n")
    server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
