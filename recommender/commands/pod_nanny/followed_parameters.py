"""The base and the extra of each resource, from the command line, and from a file or a ConfigMap."""

from __future__ import annotations

import errno
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.foundation.files.file_contents import read_regular
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import KubernetesError, NotFoundError
from recommender.commands.vertical.polls import PollError
from recommender.kinds.proportional.nanny.nanny_configuration import (
    NannyConfigurationError,
    growing_resources,
    overlaid,
    parse_nanny_configuration,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from recommender.commands.pod_nanny.settings import NannySettings
    from recommender.kinds.proportional.nanny.estimators import GrowingResource
    from recommender.kinds.proportional.nanny.nanny_configuration import NannyParameters

_log = logging.getLogger(__name__)

_KEY: Final = "NannyConfiguration"
_STATE: Final = "configuration"


class _UnknownConfigurationError(Exception):
    """The configuration cannot be read at present, so it is unknown whether there is one."""


class FollowedParameters:
    """Keeps the last good parameters. Not thread-safe."""

    def __init__(self, flags: NannyParameters, read: Callable[[], str | None], origin: str) -> None:
        """`read` returns the configuration's text, or None if there is none; `origin` names the source in messages."""
        self._flags = flags
        self._read = read
        self._origin = origin
        self._used: NannyParameters | None = None
        self._text: str | None = None
        self._is_from_text = False
        self._states = StateLog(_log)

    def current(self) -> tuple[GrowingResource, ...]:
        """Check the configuration, and return the resources that have a base.

        If there is no configuration, or if it has been unusable from the start, only the flags count, as in
        addon-resizer. The last good configuration stays in use while a newer one cannot be used. Raises PollError.
        """
        try:
            self._look()
            self._states.recovered(_STATE, "the configuration can be used again")
        except _UnknownConfigurationError as error:
            if self._used is None:
                raise PollError("error_getting_configuration", str(error)) from error
            self._states.failed(_STATE, f"the former configuration stays in use: {error}")
        except NannyConfigurationError as error:
            former = "the former configuration stays" if self._is_from_text else "the flags are"
            self._states.failed(_STATE, f"{former} in use: {error}")
            self._used = self._used or self._flags
        assert self._used is not None
        found = growing_resources(self._used, self._origin)
        if not found:
            message = f"neither the flags nor {self._origin} give a base: write --cpu or --memory"
            raise PollError("error_getting_configuration", message)
        return found

    def _look(self) -> None:
        """Read the text if it has changed. Raises NannyConfigurationError and _UnknownConfigurationError."""
        text = self._read()
        if text is None:
            if self._is_from_text:
                raise NannyConfigurationError(f"{self._origin} does not exist any more: create it again, or restart")
            self._used = self._flags
        elif text != self._text or self._used is None:
            found = parse_nanny_configuration(text, self._origin)
            for note in found.ignored:
                _log.warning("%s", note)
            self._used, self._text, self._is_from_text = overlaid(self._flags, found.parameters), text, True
            _log.info("the configuration is in force: %s", self._origin)


def followed_parameters(settings: NannySettings, objects: ObjectClient) -> FollowedParameters:
    """Return the parameters in the flags, and in the file or the ConfigMap that they name."""
    if settings.config_map:
        namespace = settings.ward.deployment.namespace
        path = f"/api/v1/namespaces/{namespace}/configmaps/{settings.config_map}"
        origin = f"the ConfigMap {namespace}/{settings.config_map}"
        return FollowedParameters(settings.parameters, partial(_text_of_config_map, objects, path), origin)
    if settings.config_file is not None:
        file = settings.config_file
        return FollowedParameters(settings.parameters, partial(_text_of_file, file), str(file))
    return FollowedParameters(settings.parameters, lambda: None, "a configuration")


def _text_of_file(file: Path) -> str | None:
    try:
        return read_regular(file).decode()
    except UnicodeDecodeError as error:
        raise NannyConfigurationError(f"{file}: byte {error.start} is not UTF-8: save it as UTF-8") from error
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return None
        raise _UnknownConfigurationError(f"{file}: {error.strerror}: check that it is readable") from error


def _text_of_config_map(objects: ObjectClient, path: str) -> str | None:
    try:
        data = objects.get(path).document.get("data")
    except NotFoundError:
        return None
    except KubernetesError as error:
        raise _UnknownConfigurationError(str(error)) from error
    text = data.get(_KEY) if isinstance(data, dict) else None
    return text if isinstance(text, str) else ""
