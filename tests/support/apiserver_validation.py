"""Checks objects as kube-apiserver does, and refuses those that are invalid."""

from __future__ import annotations

import base64
import binascii
import re

from tests.support.apiserver_kinds import APISERVICES, CONFIG_MAPS, EVENTS, KINDS, LEASES, SECRETS, Kind
from tests.support.apiserver_store import Json, RefusedError

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def _validate_lease(name: str, after: Json) -> None:
    spec = after.get("spec") or {}
    if spec.get("leaseDurationSeconds", 1) <= 0:
        raise invalid(LEASES, name, "spec.leaseDurationSeconds: Invalid value: must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        raise invalid(LEASES, name, "spec.leaseTransitions: Invalid value: must be greater than or equal to 0")
    for key in ("acquireTime", "renewTime"):
        if spec.get(key) is not None and not _MICRO_TIME.fullmatch(spec[key]):
            raise RefusedError(400, "BadRequest", f"spec.{key}: {spec[key]!r} is not a MicroTime")


def validate(kind: Kind, name: str, after: Json, before: Json | None) -> None:
    """Raise RefusedError for an object that kube-apiserver would refuse; `before` is None if it is created."""
    if kind == SECRETS:
        _validate_secret(name, after, before)
    elif kind == APISERVICES:
        _validate_apiservice(name, after)
    elif kind == LEASES:
        _validate_lease(name, after)
    elif kind == CONFIG_MAPS:
        _validate_config_map(name, after)
    elif kind == EVENTS:
        _validate_event(name, after)


def _validate_config_map(name: str, after: Json) -> None:
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        raise invalid(CONFIG_MAPS, name, "metadata.name: Invalid value: must be a lowercase RFC 1123 subdomain")
    data = after.get("data") or {}
    if not all(isinstance(value, str) for value in data.values()):
        raise RefusedError(400, "BadRequest", "ConfigMap in version v1 cannot be handled: data: expected a string")
    if sum(len(value.encode()) for value in data.values()) > 1024 * 1024:
        raise invalid(CONFIG_MAPS, name, "[]: Too long: may not be more than 1048576 bytes")


def _validate_event(name: str, after: Json) -> None:
    """Check what Kubernetes' `legacyValidateEvent` checks, and the limits of the newer API for events."""
    about = after.get("involvedObject") or {}
    where = after["metadata"].get("namespace")
    if (about.get("namespace") or "default") != where:
        raise invalid(EVENTS, name, "involvedObject.namespace: Invalid value: does not match event.namespace")
    if not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
        raise invalid(EVENTS, name, "metadata.name: Invalid value: must be a lowercase RFC 1123 subdomain")
    if len(after.get("message", "")) > 1024 or not 0 < len(after.get("reason", "")) <= 128:
        raise invalid(EVENTS, name, "message, reason: Too long")
    if after.get("type") not in {"Normal", "Warning"}:
        raise invalid(EVENTS, name, "type: Invalid value")
    for key in ("firstTimestamp", "lastTimestamp"):
        if not _TIME.fullmatch(after.get(key) or ""):
            raise RefusedError(400, "BadRequest", f"{key}: {after.get(key)!r} is not a Time")


def _validate_secret(name: str, after: Json, before: Json | None) -> None:
    data = after.get("data") or {}
    for key, value in data.items():
        _check_base64(f"data.{key}", value)
    if before and before.get("immutable") and before.get("data") != after.get("data"):
        raise invalid(SECRETS, name, "data: Forbidden: field is immutable when `immutable` is set")
    if before and before.get("type") != after.get("type"):
        raise invalid(SECRETS, name, "type: Invalid value: field is immutable")
    if after.get("type") == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                raise invalid(SECRETS, name, f"data[{key}]: Required value")


def _validate_apiservice(name: str, after: Json) -> None:
    spec = after.get("spec") or {}
    if spec.get("caBundle"):
        _check_base64("spec.caBundle", spec["caBundle"])
        if spec.get("insecureSkipTLSVerify"):
            message = "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"
            raise invalid(APISERVICES, name, message)
    if f"{spec.get('version')}.{spec.get('group')}" != name:
        raise invalid(APISERVICES, name, "metadata.name: Invalid value: must be `spec.version+.+spec.group`")


def _check_base64(where: str, value: object) -> None:
    try:
        base64.b64decode(str(value), validate=True)
    except binascii.Error as e:
        raise RefusedError(400, "BadRequest", f"{where}: illegal base64 data") from e


def invalid(kind: Kind, name: str, cause: str) -> RefusedError:
    """Return the refusal of an invalid object."""
    return RefusedError(422, "Invalid", f'{KINDS[kind]} "{name}" is invalid: {cause}')
