"""Field selectors, as the lists of pods' and nodes' use understand them: by name and by namespace (pure).

The syntax is that of `k8s.io/apimachinery/pkg/fields`: terms with `=`, `==` or `!=`, joined by commas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.apis.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME, NAMESPACE = "metadata.name", "metadata.namespace"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Field, whether it is to be equal, and value; all terms must hold."""

    terms: tuple[tuple[str, bool, str], ...] = ()

    def matches(self, namespace: str | None, name: str) -> bool:
        """Tell whether an object is selected; one that is in no namespace has an empty one."""
        fields = {NAME: name, NAMESPACE: namespace or ""}
        return all((fields[field] == value) is equal for field, equal, value in self.terms)

    @property
    def name(self) -> str | None:
        """The one name that objects must have; None where any may do."""
        return next((value for field, equal, value in self.terms if equal and field == NAME), None)

    @property
    def namespace(self) -> str | None:
        """The one namespace that objects must be in; None where any may do."""
        return next((value for field, equal, value in self.terms if equal and field == NAMESPACE), None)


def parse_field_selector(text: str) -> FieldSelector:
    """Return the selector; an empty text selects everything. Raises ApiError 400."""
    return FieldSelector(tuple(_terms(text)))


def _terms(text: str) -> Iterator[tuple[str, bool, str]]:
    for term in filter(None, text.split(",")):
        field, sign, value = _split(term)
        if not sign:
            raise ApiError(400, f"unable to parse fieldSelector {text!r}: {term!r} is no term: write {NAME}=NAME")
        if field not in {NAME, NAMESPACE}:
            raise ApiError(400, f"the field {field!r} cannot be selected by: only {NAME} and {NAMESPACE} can")
        if "\\" in value or "=" in value:
            # Both would have to be escaped, and neither is in any name.
            raise ApiError(400, f"unable to parse fieldSelector {text!r}: {value!r} cannot be a name")
        yield field, sign != "!=", value


def _split(term: str) -> tuple[str, str, str]:
    """Return field, sign and value of a term; an empty sign where it has none."""
    position = next((number for number, character in enumerate(term) if character in "=!"), len(term))
    for sign in ("!=", "==", "="):
        if term.startswith(sign, position):
            return term[:position], sign, term[position + len(sign) :]
    return term, "", ""
