"""Answers of kube-apiserver, read piece by piece, and connection failures as classes of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import urllib3.exceptions

from adapter.foundation.sources.kubernetes.errors import (
    ConfigurationError,
    KubernetesError,
    SilentError,
    UnexpectedResponseError,
    UnreachableError,
    trim_message,
)
from adapter.foundation.sources.kubernetes.transport import TlsError
from adapter.foundation.sources.secrets import NO_SECRETS, Secrets

_READ_BYTES = 1 << 16


class Answer:
    """The body of a 2xx answer, read piece by piece."""

    def __init__(
        self, what: str, response: urllib3.HTTPResponse, clock: Callable[[], float], secrets: Secrets = NO_SECRETS
    ) -> None:
        """`response` is a response whose body has not been read; `what` names the call in errors.

        `secrets` are hidden in the body as it is read.
        """
        self.what = what
        self._response = response
        self._clock = clock
        self._secrets = secrets
        self._cancelled = False

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer, with case-insensitive names."""
        return self._response.headers

    def pieces(self, total_seconds: float) -> Iterator[bytes]:
        """Return the bytes as they arrive, until the answer ends or is cancelled.

        Raises UnreachableError if the connection fails, or if the answer has not ended after `total_seconds`.
        """
        return self._secrets.hidden_in_pieces(self._read_pieces(total_seconds))

    def _read_pieces(self, total_seconds: float) -> Iterator[bytes]:
        end = self._clock() + total_seconds
        while not self._cancelled:
            with transport_errors(self.what):
                piece = self._response.read1(_READ_BYTES)
            if not piece:
                return
            yield piece
            if self._clock() >= end:
                raise UnreachableError(f"{self.what}: the answer did not end within {total_seconds:g} s")

    def whole(self, total_seconds: float, most_bytes: int) -> bytes:
        """Return the whole body. Raises the errors of `pieces`, and UnexpectedResponseError above `most_bytes`."""
        body = bytearray()
        for piece in self.pieces(total_seconds):
            body += piece
            if len(body) > most_bytes:
                raise UnexpectedResponseError(f"{self.what}: the answer is larger than {most_bytes >> 20} MiB")
        return bytes(body)

    def cancel(self) -> None:
        """End the read that another thread is waiting in, and all later ones."""
        self._cancelled = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):
            # The answer has ended, or the connection was closed.
            return


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """A 2xx answer that was read to its end."""

    headers: Mapping[str, str]
    """Headers, with case-insensitive names."""
    body: bytes


class CertificateError(UnreachableError):
    """The server's certificate could not be verified; the CA bundle may have been replaced."""


@contextmanager
def transport_errors(what: str) -> Iterator[None]:
    """Convert connection failures within the block to KubernetesError; `what` names the call in messages."""
    try:
        yield
    except KubernetesError:
        raise
    except TlsError as error:
        raise CertificateError(f"{what}: TLS: {trim_message(str(error))}") from None
    except urllib3.exceptions.NewConnectionError as error:
        # Its text begins with the connection object. Its class is a time-out, but mostly the connection was refused.
        raise UnreachableError(f"{what}: cannot connect: {trim_message(str(error).rsplit(': ', 1)[-1])}") from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise SilentError(f"{what}: no answer in time") from error
    except urllib3.exceptions.TimeoutError as error:
        raise UnreachableError(f"{what}: no connection in time") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnreachableError(f"{what}: {trim_message(str(error))}") from error
    except ValueError:
        # The value of a header cannot be sent, and the exception quotes it.
        raise ConfigurationError(f"{what}: the credentials contain characters that cannot be sent") from None
