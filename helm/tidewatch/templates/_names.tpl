{{/* Prefix of all names: short enough for every suffix. */}}
{{- define "tidewatch.fullname" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $name := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- .Values.fullnameOverride | default $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tidewatch.adapter" -}}
{{ include "tidewatch.fullname" . }}-adapter
{{- end -}}

{{- define "tidewatch.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "tidewatch.adapter" .) "default") -}}
{{- end -}}

{{- define "tidewatch.rules" -}}
{{- .Values.rules.existing | default (printf "%s-rules" (include "tidewatch.adapter" .)) -}}
{{- end -}}

{{/* The Secret of the serving certificate. */}}
{{- define "tidewatch.servingSecret" -}}
{{- if eq .Values.certificates.mode "given" -}}
{{ .Values.certificates.given.secret }}
{{- else -}}
{{ include "tidewatch.adapter" . }}-serving
{{- end -}}
{{- end -}}

{{/* Not empty if the adapter keeps its own certificate in that Secret: there must be an APIService to publish the CA in. */}}
{{- define "tidewatch.keepsCertificate" -}}
{{- if and (eq .Values.certificates.mode "self") (include "tidewatch.apiServices" . | fromYamlArray) }}true{{ end -}}
{{- end -}}

{{- define "tidewatch.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: adapter
{{- end -}}

{{- define "tidewatch.labels" -}}
{{ include "tidewatch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | quote }}
{{- end -}}

{{/* `metadata` of the object with the given name; `namespace: ""` for a cluster-scoped object. */}}
{{- define "tidewatch.metadata" -}}
name: {{ .name }}
{{- with hasKey . "namespace" | ternary .namespace .context.Release.Namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "tidewatch.labels" .context | nindent 2 }}
{{- end -}}

{{- define "tidewatch.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}
