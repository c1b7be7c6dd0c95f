"""Checks names as Kubernetes does, so that an invalid one is refused before it is written to a query or a path.

The rules are those of `k8s.io/apimachinery/pkg/util/validation` and, for names in paths, of `pkg/api/validation/path`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN: Final = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NOT_IN_A_PATH_SEGMENT: Final = re.compile(r"[/%\x00-\x1f\x7f]")

_LABEL_LENGTH: Final = 63
_SUBDOMAIN_LENGTH: Final = 253


def is_namespace_name(text: str) -> bool:
    """Return whether a namespace may have this name: a DNS-1123 label of at most 63 characters."""
    return len(text) <= _LABEL_LENGTH and _DNS_LABEL.fullmatch(text) is not None


def is_subdomain_name(text: str) -> bool:
    """Return whether the text is a DNS-1123 subdomain of at most 253 characters, as names of most kinds must be."""
    return len(text) <= _SUBDOMAIN_LENGTH and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Return whether an object of any kind may have this name, that is, whether it can be one segment of a path.

    Most kinds allow only DNS names, but some allow others, such as `system:node-proxier`.
    """
    return (
        0 < len(text) <= _SUBDOMAIN_LENGTH and text not in {".", ".."} and _NOT_IN_A_PATH_SEGMENT.search(text) is None
    )


def label_key_problem(key: str) -> str | None:
    """Return what is wrong with a label's key; None if it is valid: a name, after an optional DNS prefix and `/`."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _SUBDOMAIN_LENGTH and _DNS_SUBDOMAIN.fullmatch(prefix)):
        return f"its prefix {prefix!r} is not a DNS subdomain of at most {_SUBDOMAIN_LENGTH} characters"
    return _label_name_problem(name)


def label_value_problem(value: str) -> str | None:
    """Return what is wrong with a label's value; None if it is valid. The empty value is valid."""
    return _label_name_problem(value) if value else None


def _label_name_problem(text: str) -> str | None:
    if len(text) > _LABEL_LENGTH:
        return f"it is {len(text)} characters long, and {_LABEL_LENGTH} are allowed"
    if _LABEL_NAME.fullmatch(text) is None:
        return "only letters, digits and - _ . are allowed, with a letter or digit at both ends"
    return None


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object in a namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
