{{/* Names of the APIServices that are asked for, as a YAML list. */}}
{{- define "tidewatch.apiServices" -}}
{{- $names := list -}}
{{- range $api, $versions := dict "custom" .Values.apiServices.custom "external" .Values.apiServices.external -}}
{{- range $version, $wanted := $versions -}}
{{- if $wanted }}{{ $names = append $names (printf "%s.%s.metrics.k8s.io" $version $api) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $names | sortAlpha | toYaml -}}
{{- end -}}

{{/* Fails where an APIService is somebody else's. Only Helm against a cluster can see that; `helm template` cannot. */}}
{{- define "tidewatch.refuseSeizing" -}}
{{- $found := lookup "apiregistration.k8s.io/v1" "APIService" "" .name -}}
{{- $release := .context.Release -}}
{{- if and $found (not .context.Values.apiServices.force) -}}
{{- $notes := $found.metadata.annotations | default dict -}}
{{- $owner := printf "%s/%s" (index $notes "meta.helm.sh/release-namespace") (index $notes "meta.helm.sh/release-name") -}}
{{- $service := $found.spec.service | default (dict "namespace" "" "name" "") -}}
{{- $ours := and (eq $service.namespace $release.Namespace) (eq $service.name (include "tidewatch.adapter" .context)) -}}
{{- if not (or $ours (eq $owner (printf "%s/%s" $release.Namespace $release.Name))) -}}
{{- $server := empty $service.name | ternary "kube-apiserver itself" (printf "the service %s/%s" $service.namespace $service.name) -}}
{{- $by := hasKey $notes "meta.helm.sh/release-name" | ternary (printf ", of the Helm release %s" $owner) "" -}}
{{- $value := regexReplaceAll "^([^.]+)[.]([^.]+)[.].*$" .name "apiServices.${2}.${1}" -}}
{{- fail (printf "the APIService %s belongs to %s%s, and a version of an API has one server only: leave it there with --set %s=false, or take it over with --set apiServices.force=true and Helm's --take-ownership" .name $server $by $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
