"""A server in its own process, run as a module, that answers with the identity of its caller.

The argument is JSON: `certificate`, `key`, `client_cas` (what TLS trusts), `front_proxy_ca`, `allowed_names`.
"""

from __future__ import annotations

import json
import ssl
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import configure_logs
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.process import serve_forever
from adapter.foundation.service.server.server_settings import ServerOptions
from adapter.foundation.service.server.tls import TlsSettings
from adapter.foundation.web.http import Request, Response
from adapter.foundation.web.wsgi import wsgi_application
from adapter.metrics.identity.authentication import AccessControl
from adapter.metrics.identity.caller_authorities import CallerCAs, FrontProxySettings, MaterialSettings
from adapter.metrics.identity.callers import IdentityError

if TYPE_CHECKING:
    from collections.abc import Callable


def answer_with_caller(access_control: AccessControl) -> Callable[[Request], Response]:
    """Return a handler that answers with the caller."""

    def handle(request: Request) -> Response:
        try:
            caller = access_control.check(request)
        except IdentityError as e:
            return Response(e.code, e.message.encode(), "text/plain")
        fields = {name: value for name, value in asdict(caller).items() if name != "key"}
        return Response(200, json.dumps(fields).encode())

    return handle


def main() -> None:
    settings = json.loads(sys.argv[1])
    front_proxy = FrontProxySettings(Path(settings["front_proxy_ca"]), tuple(settings["allowed_names"]))
    access_control = AccessControl(CallerCAs(MaterialSettings(front_proxy)))
    trusted = frozenset(ssl.PEM_cert_to_DER_cert(Path(file).read_text()) for file in settings["client_cas"])
    configure_logs()
    options = ServerOptions(
        program="identity-server",
        version="0",
        metrics_prefix="identity_server",
        address=Address("127.0.0.1", 0),
        tls=TlsSettings(
            certificate_file=Path(settings["certificate"]),
            key_file=Path(settings["key"]),
            client_authorities=lambda: trusted,
        ),
        plain_address=None,
        shutdown_delay_seconds=0.0,
    )
    serve_forever(options, lambda _: wsgi_application(answer_with_caller(access_control)))


if __name__ == "__main__":
    main()
