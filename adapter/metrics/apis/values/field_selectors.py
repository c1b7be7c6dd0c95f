"""Field selectors of the lists of pod and node usage, which select by name and namespace (pure).

The syntax is that of `k8s.io/apimachinery/pkg/fields`: terms with `=`, `==` or `!=`, joined by commas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adapter.metrics.apis.status import ApiError

NAME, NAMESPACE = "metadata.name", "metadata.namespace"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms, all of which must hold: each has a field, whether the field must equal the value, and the value."""

    terms: tuple[tuple[str, bool, str], ...] = ()

    def matches(self, namespace: str | None, name: str) -> bool:
        """Return whether an object is selected; the namespace of a cluster-scoped object is empty."""
        fields = {NAME: name, NAMESPACE: namespace or ""}
        return all((fields[field] == value) is equal for field, equal, value in self.terms)

    @property
    def name(self) -> str | None:
        """The only name that is selected; None if there are several."""
        return next((value for field, equal, value in self.terms if equal and field == NAME), None)

    @property
    def namespace(self) -> str | None:
        """The only namespace that is selected; None if there are several."""
        return next((value for field, equal, value in self.terms if equal and field == NAMESPACE), None)


def parse_field_selector(text: str) -> FieldSelector:
    """Return the selector; an empty text selects everything. Raises ApiError 400."""
    return FieldSelector(tuple(_terms(text)))


def _terms(text: str) -> Iterator[tuple[str, bool, str]]:
    for term in filter(None, text.split(",")):
        field, sign, value = _split_term(term)
        if not sign:
            raise ApiError(400, f"unable to parse fieldSelector {text!r}: {term!r} is not a term: write {NAME}=NAME")
        if field not in {NAME, NAMESPACE}:
            raise ApiError(400, f"the field {field!r} cannot be selected by: only {NAME} and {NAMESPACE} can")
        if "\\" in value or "=" in value:
            # Both would have to be escaped, and neither is in any name.
            raise ApiError(400, f"unable to parse fieldSelector {text!r}: {value!r} cannot be a name")
        yield field, sign != "!=", value


def _split_term(term: str) -> tuple[str, str, str]:
    """Return the field, sign and value of a term; the sign is empty if there is none."""
    position = next((number for number, character in enumerate(term) if character in "=!"), len(term))
    for sign in ("!=", "==", "="):
        if term.startswith(sign, position):
            return term[:position], sign, term[position + len(sign) :]
    return term, "", ""
