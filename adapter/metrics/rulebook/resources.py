"""Determines which Prometheus label contains the names of which kind of Kubernetes object, in both directions.

A rule states it label by label (`overrides`), by a template such as `kube_<<.Group>>_<<.Resource>>`, or by both, in
which case overrides take precedence. As in prometheus-adapter, the template is also used as a pattern that finds the
group and the resource in a label's name; its literal parts are part of the pattern without being escaped. Names that
need quotes, which prometheus-adapter does not have, must be those that the template makes. Unlike in
prometheus-adapter, whether a metric is namespaced depends on the resource alone.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace

from adapter.foundation.objects.regex import Pattern, compile_small_pattern
from adapter.foundation.objects.resources import ResolveResource, Resource, UnknownResourceError
from adapter.foundation.promql.quoting import is_label_name, is_quoted_label_name
from adapter.metrics.rulebook.gotemplate import Struct, Template, TemplateError, execute, parse_template

_GROUP_PATTERN = "(?P<group>.+?)"
_RESOURCE_PATTERN = "(?P<resource>.+?)"
_SANITIZED = str.maketrans(".-", "__")


class LabelTemplateError(ValueError):
    """A label template cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class LabelTemplate:
    """A template such as `kube_<<.Group>>_<<.Resource>>`; returns a resource's label, and a label's resource."""

    text: str
    pattern: Pattern = field(compare=False)
    _template: Template = field(compare=False, repr=False)

    @property
    def repeats(self) -> bool:
        """Whether executing it may take much longer than its length suggests."""
        return self._template.repeats

    def label_of(self, group: str, singular: str) -> str:
        """Return the label of a resource. Raises LabelTemplateError if it is not a valid label name."""
        label = _render_name(self._template, group.translate(_SANITIZED), singular)
        if not is_quoted_label_name(label):
            raise LabelTemplateError(
                f"its label for {singular!r} is {label!r}, which is not a valid label name in PromQL"
            )
        return label

    def resource_of(self, label: str, resolve: ResolveResource) -> Resource | None:
        """Return the resource that the label names; None if there is none."""
        found = self.pattern.search(label)
        if found is None:
            return None
        try:
            return resolve(found.group("group") or "", found.group("resource") or "")
        except UnknownResourceError:
            return None


def parse_label_template(text: str) -> LabelTemplate:
    """Return the template; raises TemplateError, BadPatternError or LabelTemplateError.

    The template is tried with namespaces at once: without a label for them, a rule can serve almost nothing.
    """
    template = parse_template(text, "resource-label")
    pattern = compile_small_pattern(f"^{_render_name(template, _GROUP_PATTERN, _RESOURCE_PATTERN)}$")
    if not any(name == "resource" for name, _ in pattern.names):
        raise LabelTemplateError("it does not contain <<.Resource>>")
    made = LabelTemplate(text, pattern, template)
    made.label_of("", "namespace")
    return made


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """The `resources` of a rule."""

    overrides: tuple[tuple[str, Resource], ...] = ()
    """Labels and their resources, in the order of the file."""
    template: LabelTemplate | None = None

    def with_guessed_scopes(self) -> ResourceMapping:
        """Return the mapping with each kind of unknown scope as one that the rule could serve.

        Without a label for the namespace, that is a kind outside of namespaces.
        """
        if self.namespace_label() is not None:
            return self
        guessed = [
            (at, kind if kind.scope_is_known else replace(kind, namespaced=False)) for at, kind in self.overrides
        ]
        return replace(self, overrides=tuple(guessed))

    def resource_of(self, label: str, resolve: ResolveResource) -> Resource | None:
        """Return the kind of object whose names the label contains; None if there is none."""
        for overridden, resource in self.overrides:
            if overridden == label:
                return resource
        found = self.template.resource_of(label, resolve) if self.template else None
        made = None if found is None else self._template_label(found.group, found.singular)
        # The dots of a name that needs quotes match any sign, but queries ask for the name itself.
        return found if made is None or made == label or is_label_name(made) else None

    def label_of(self, resource: Resource, present: Container[str] = ()) -> str | None:
        """Return the label that contains the names of such objects; None if the rule has none for them.

        Of several overrides for one resource, the first among the labels `present` is used, otherwise the first.
        """
        label = self._override(resource.group, resource.plural, present)
        return label or self._template_label(resource.group, resource.singular)

    def namespace_label(self, present: Container[str] = ()) -> str | None:
        """Return the label that contains the namespace, chosen as in `label_of`; None if the rule has none."""
        return self._override("", "namespaces", present) or self._template_label("", "namespace")

    def _override(self, group: str, plural: str, present: Container[str]) -> str | None:
        labels = [label for label, mapped in self.overrides if (mapped.group, mapped.plural) == (group, plural)]
        return next((label for label in labels if label in present), labels[0] if labels else None)

    def _template_label(self, group: str, singular: str) -> str | None:
        if self.template is None:
            return None
        try:
            return self.template.label_of(group, singular)
        except (LabelTemplateError, TemplateError):
            return None


def _render_name(template: Template, group: str, resource: str) -> str:
    return execute(template, Struct({"Group": group, "Resource": resource}))
