"""Which errors of OpenSSL mean that the other side does not speak TLS."""

from __future__ import annotations

import pytest

from adapter.foundation.sources.tls import speaks_no_tls


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", True),
        ("SSLError\n[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", True),
        ("[SSL: RECORD_LAYER_FAILURE] record layer failure (_ssl.c:1016)", True),
        ("[SSL: PACKET_LENGTH_TOO_LONG] packet length too long (_ssl.c:1006)", True),
        # A Python that is older than its OpenSSL does not know the name.
        ("[SSL] record layer failure (_ssl.c:1000)", True),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)", False),
        ("[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert protocol version (_ssl.c:1006)", False),
        ("Can't connect", False),
    ],
)
def test_the_errors_of_a_server_without_tls(message: str, *, expected: bool) -> None:
    assert speaks_no_tls(message) is expected
