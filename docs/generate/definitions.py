"""The chart's templates of CustomResourceDefinitions, which are generated from the strict readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from docs.generate.metric_rule_crd import metric_rule_crd
from recommender.configuration.objects.definition import definition as recommendations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CHARACTERS: Final = 140
_TEMPLATE: Final = """{{{{- /* Made from the code by `python -m docs.generate`: do not edit it. */ -}}}}
{{{{- if .Values.crds.enabled }}}}
apiVersion: {version}
kind: {kind}
metadata:
  {{{{- $about := dict "context" . "name" "{name}" "component" "{component}" "namespace" "" }}}}
  {{{{- include "tidewatch.metadata" $about | nindent 2 }}}}
  annotations:
    # Their objects would be deleted with them.
    helm.sh/resource-policy: keep
{spec}{{{{- end }}}}
"""

DEFINITIONS: Final[dict[str, tuple[str, Callable[[], Mapping[str, Any]]]]] = {
    "helm/tidewatch/templates/crd-metricrules.yaml": ("adapter", metric_rule_crd),
    "helm/tidewatch/templates/crd-recommendations.yaml": ("recommendations", recommendations),
}
"""Component and CustomResourceDefinition, by the path of the template in the checkout."""


class _Dumper(yaml.SafeDumper):
    """Writes every value in full, even if it occurs twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as the library has it
        """Return True, so that no aliases are written."""
        return True


def template(definition: Mapping[str, Any], component: str) -> str:
    """Return the template of a CustomResourceDefinition, which the value `crds.enabled` installs."""
    spec = yaml.dump(
        {"spec": definition["spec"]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_CHARACTERS
    )
    return _TEMPLATE.format(
        version=definition["apiVersion"],
        kind=definition["kind"],
        name=definition["metadata"]["name"],
        component=component,
        # Text that looks like an action of a template would be executed.
        spec=spec.replace("{{", '{{ "{{" }}'),
    )
