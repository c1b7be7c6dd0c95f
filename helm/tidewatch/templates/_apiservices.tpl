{{/* Names of the APIServices that the values request, as a YAML list. */}}
{{- define "tidewatch.apiServices" -}}
{{- $names := list -}}
{{- if .Values.adapter.enabled -}}
{{- range $api, $versions := dict "custom" .Values.apiServices.custom "external" .Values.apiServices.external -}}
{{- range $version, $wanted := $versions -}}
{{- if $wanted }}{{ $names = append $names (printf "%s.%s.metrics.k8s.io" $version $api) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if include "tidewatch.answersForResources" . }}{{ $names = append $names (include "tidewatch.resourceApi" .) }}{{ end -}}
{{- end -}}
{{- $names | sortAlpha | toYaml -}}
{{- end -}}

{{- define "tidewatch.resourceApi" -}}v1beta1.metrics.k8s.io{{- end -}}

{{/* Not empty if metrics.k8s.io is registered. */}}
{{- define "tidewatch.answersForResources" -}}
{{- $wanted := toString .Values.apiServices.resource.v1beta1 -}}
{{- if and .Values.adapter.enabled (or (eq $wanted "true") (and (eq $wanted "auto") .Values.rules.resource)) }}true{{ end -}}
{{- end -}}

{{/* Fails if an APIService belongs to another program. Helm sees that only with access to a cluster, not in `helm template`. */}}
{{- define "tidewatch.refuseSeizing" -}}
{{- $resource := eq .name (include "tidewatch.resourceApi" .context) -}}
{{- $found := lookup "apiregistration.k8s.io/v1" "APIService" "" .name -}}
{{- if $found -}}
{{- $release := .context.Release -}}
{{- $notes := $found.metadata.annotations | default dict -}}
{{- $owner := printf "%s/%s" (index $notes "meta.helm.sh/release-namespace") (index $notes "meta.helm.sh/release-name") -}}
{{- $service := $found.spec.service | default (dict "namespace" "" "name" "") -}}
{{- $ours := and (eq $service.namespace $release.Namespace) (eq $service.name (include "tidewatch.adapter" .context)) -}}
{{- $server := empty $service.name | ternary "kube-apiserver itself" (printf "the service %s/%s" $service.namespace $service.name) -}}
{{- $by := hasKey $notes "meta.helm.sh/release-name" | ternary (printf ", of the Helm release %s" $owner) "" -}}
{{- $whose := printf "the APIService %s belongs to %s%s" .name $server $by -}}
{{- /* If metrics-server is applied by kubectl over ours, our annotation stays, so only the Service counts here. */ -}}
{{- if and $resource (not $ours) -}}
{{- fail (printf "%s, and is never taken over, because `kubectl top` and HPAs on CPU depend on it: remove that server first (kubectl delete apiservice %s, once it is gone), or leave metrics.k8s.io to it with rules.resource={} or --set apiServices.resource.v1beta1=false" $whose .name) -}}
{{- end -}}
{{- if not (or $ours (eq $owner (printf "%s/%s" $release.Namespace $release.Name)) .context.Values.apiServices.force) -}}
{{- $value := regexReplaceAll "^([^.]+)[.]([^.]+)[.].*$" .name "apiServices.${2}.${1}" -}}
{{- fail (printf "%s, and a version of an API can have only one server: leave it there with --set %s=false, or take it over with --set apiServices.force=true and Helm's --take-ownership" $whose $value) -}}
{{- end -}}
{{- else if and $resource (not .context.Values.apiServices.resource.unchecked) (not (lookup "v1" "Namespace" "" "kube-system")) -}}
{{- fail (printf "rules.resource: Helm has no access to a cluster here, so it cannot check whether metrics-server has the APIService %s: check it yourself (kubectl get apiservice %s) and confirm it with --set apiServices.resource.unchecked=true, or register nothing with --set apiServices.resource.v1beta1=false; `helm install` and --dry-run=server check it by themselves" .name .name) -}}
{{- end -}}
{{- end -}}
