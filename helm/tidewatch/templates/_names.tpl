{{/* Prefix of all names: short enough for every suffix. A release may have dots in its name, and a Service must not. */}}
{{- define "tidewatch.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $name := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- .Values.fullnameOverride | default $name | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tidewatch.adapter" -}}
{{ include "tidewatch.fullname" . }}-adapter
{{- end -}}

{{- define "tidewatch.recommender" -}}
{{ include "tidewatch.fullname" . }}-recommender
{{- end -}}

{{- define "tidewatch.nodes" -}}
{{ include "tidewatch.fullname" . }}-nodes
{{- end -}}

{{/* The second scheduler, which asks the component `nodes`. */}}
{{- define "tidewatch.scheduler" -}}
{{ include "tidewatch.fullname" . }}-scheduler
{{- end -}}

{{/* The rules that ship and are served, as a YAML list of their names (rules.shipped). */}}
{{- define "tidewatch.shippedRules" -}}
{{- $rules := .Values.rules -}}
{{- $own := or $rules.default $rules.custom $rules.external $rules.resource -}}
{{- if kindIs "slice" $rules.shipped -}}
{{ toYaml $rules.shipped }}
{{- else if $rules.existing -}}
[]
{{- else -}}
{{ concat (empty $own | ternary (list "websocket") list) (.Values.recommender.enabled | ternary (list "recommendations") list) | toYaml }}
{{- end -}}
{{- end -}}

{{/* The components that are enabled, as a YAML list of {component, name, replicas, metricsPort}. */}}
{{- define "tidewatch.components" -}}
{{- if .Values.adapter.enabled }}
- {component: adapter, name: {{ include "tidewatch.adapter" . }}, replicas: {{ toJson .Values.replicas }}, metricsPort: {{ .Values.metrics.port }}}
{{- end }}
{{- if .Values.recommender.enabled }}
- {component: recommender, name: {{ include "tidewatch.recommender" . }}, replicas: {{ .Values.recommender.replicas }}, metricsPort: {{ .Values.recommender.metricsPort }}}
{{- end }}
{{- if .Values.nodes.enabled }}
- {component: nodes, name: {{ include "tidewatch.nodes" . }}, replicas: {{ toJson .Values.nodes.replicas }}, metricsPort: {{ .Values.nodes.metricsPort }}}
{{- end }}
{{- end -}}

{{/*
The monitor of a component (.context, .component): ServiceMonitor, PodMonitor, or empty. `auto` is a ServiceMonitor of the
recommender, which HPAs need, where its kind exists and the values choose no other way to scrape.
*/}}
{{- define "tidewatch.monitor" -}}
{{- $metrics := .context.Values.metrics -}}
{{- $wanted := toString $metrics.serviceMonitor.enabled -}}
{{- $exists := .context.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" -}}
{{- if eq $wanted "true" -}}
ServiceMonitor
{{- else if $metrics.podMonitor.enabled -}}
PodMonitor
{{- else if and (eq $wanted "auto") (eq .component "recommender") $exists (not $metrics.service.enabled) -}}
ServiceMonitor
{{- end -}}
{{- end -}}

{{/* Likewise everything that has pods: the components, and the second scheduler, whose metrics are not this chart's. */}}
{{- define "tidewatch.workloads" -}}
{{- include "tidewatch.components" . }}
{{- with .Values.nodes.scheduler }}
{{- if .enabled }}
- {component: scheduler, name: {{ include "tidewatch.scheduler" $ }}, replicas: {{ .replicas }}}
{{- end }}
{{- end }}
{{- end -}}

{{- define "tidewatch.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "tidewatch.adapter" .) "default") -}}
{{- end -}}

{{- define "tidewatch.recommender.serviceAccount" -}}
{{- with .Values.recommender.serviceAccount -}}
{{- .name | default (.create | ternary (include "tidewatch.recommender" $) "default") -}}
{{- end -}}
{{- end -}}

{{- define "tidewatch.nodes.serviceAccount" -}}
{{- with .Values.nodes.serviceAccount -}}
{{- .name | default (.create | ternary (include "tidewatch.nodes" $) "default") -}}
{{- end -}}
{{- end -}}

{{- define "tidewatch.scheduler.serviceAccount" -}}
{{- with .Values.nodes.scheduler.serviceAccount -}}
{{- .name | default (.create | ternary (include "tidewatch.scheduler" $) "default") -}}
{{- end -}}
{{- end -}}

{{- define "tidewatch.rules" -}}
{{- .Values.rules.existing | default (printf "%s-rules" (include "tidewatch.adapter" .)) -}}
{{- end -}}

{{/* The ConfigMap with the recommender's configuration file. */}}
{{- define "tidewatch.recommender.configMap" -}}
{{- .Values.recommender.existingConfig | default (include "tidewatch.recommender" .) -}}
{{- end -}}

{{/* The ConfigMap with the SchedulingConfiguration. */}}
{{- define "tidewatch.nodes.configMap" -}}
{{- .Values.nodes.existingConfig | default (include "tidewatch.nodes" .) -}}
{{- end -}}

{{/*
The Secret of the serving certificate. That of cert-manager has a name of its own: it stays when its Certificate is deleted, and its type is
immutable, so it would keep Helm from going back to a certificate of the adapter's own.
*/}}
{{- define "tidewatch.servingSecret" -}}
{{- if eq .Values.certificates.mode "given" -}}
{{ .Values.certificates.given.secret }}
{{- else if eq .Values.certificates.mode "certManager" -}}
{{ include "tidewatch.adapter" . }}-tls
{{- else -}}
{{ include "tidewatch.adapter" . }}-serving
{{- end -}}
{{- end -}}

{{/* Not empty if the adapter keeps its own certificate in that Secret: there must be an APIService to publish the CA in. */}}
{{- define "tidewatch.keepsCertificate" -}}
{{- if and (eq .Values.certificates.mode "self") (include "tidewatch.apiServices" . | fromYamlArray) }}true{{ end -}}
{{- end -}}

{{/* The labels by which the adapter's pods are selected. A Deployment's selector is immutable: these never change. */}}
{{- define "tidewatch.selector" -}}
{{ include "tidewatch.componentSelector" (dict "context" . "component" "adapter") }}
{{- end -}}

{{- define "tidewatch.recommender.selector" -}}
{{ include "tidewatch.componentSelector" (dict "context" . "component" "recommender") }}
{{- end -}}

{{- define "tidewatch.nodes.selector" -}}
{{ include "tidewatch.componentSelector" (dict "context" . "component" "nodes") }}
{{- end -}}

{{- define "tidewatch.scheduler.selector" -}}
{{ include "tidewatch.componentSelector" (dict "context" . "component" "scheduler") }}
{{- end -}}

{{- define "tidewatch.componentSelector" -}}
{{- with .context -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/*
`metadata` of the object with the given name, of the adapter unless `component` names another one; `namespace: ""` for a cluster-scoped
object. `labels`, if given, take the place of the chart's own.
*/}}
{{- define "tidewatch.metadata" -}}
name: {{ .name | quote }}
{{- with hasKey . "namespace" | ternary .namespace .context.Release.Namespace }}
namespace: {{ . | quote }}
{{- end }}
labels:
  {{- if .labels }}
  {{- merge (dict) .labels (include "tidewatch.labels" . | fromYaml) | toYaml | nindent 2 }}
  {{- else }}
  {{- include "tidewatch.labels" . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "tidewatch.labels" -}}
{{ include "tidewatch.componentSelector" (dict "context" .context "component" (.component | default "adapter")) }}
{{- with .context }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end }}
{{- end -}}

{{- define "tidewatch.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}
