{{/* The arguments of `tidewatch-adapter`, as a YAML list. */}}
{{- define "tidewatch.args" -}}
- serve
- --secure-port={{ .Values.listenPort }}
- --plain-bind-address=:{{ .Values.metrics.port }}
- --shutdown-delay={{ .Values.shutdownDelaySeconds }}s
- --config=/etc/tidewatch/rules
- {{ printf "--prometheus-url=%s" (include "tidewatch.prometheusUrl" .) | quote }}
{{- include "tidewatch.credentialArgs" .Values.prometheus.credentials }}
- --metrics-relist-interval={{ .Values.metricsRelistInterval }}
{{- if eq .Values.certificates.mode "self" }}
- --cert-dir=/tmp/certificates
{{- if include "tidewatch.keepsCertificate" . }}
- --serving-secret={{ .Release.Namespace }}/{{ include "tidewatch.servingSecret" . }}
- --service={{ .Release.Namespace }}/{{ include "tidewatch.adapter" . }}
{{- range include "tidewatch.apiServices" . | fromYamlArray }}
- --apiservice={{ . }}
{{- end }}
{{- end }}
{{- else }}
- --tls-cert-file=/etc/tidewatch/serving/tls.crt
- --tls-private-key-file=/etc/tidewatch/serving/tls.key
{{- end }}
- --log-format={{ .Values.logFormat }}
- --log-level={{ .Values.logLevel }}
{{- range .Values.extraArguments }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "tidewatch.prometheusUrl" -}}
{{- with .Values.prometheus -}}
{{ tpl .url $ }}{{ if .port }}:{{ .port }}{{ end }}{{ .path }}
{{- end -}}
{{- end -}}

{{/* Flags for the credentials of Prometheus: the files are keys of one mounted Secret. */}}
{{- define "tidewatch.credentialArgs" -}}
{{- $flags := dict "ca" "ca-file" "token" "token-file" "password" "password-file" "certificate" "client-tls-cert-file" "key" "client-tls-key-file" -}}
{{- range $name, $flag := $flags }}
{{- with index $ $name }}
- --prometheus-{{ $flag }}=/etc/tidewatch/prometheus/{{ . }}
{{- end }}
{{- end }}
{{- with .username }}
- {{ printf "--prometheus-username=%s" . | quote }}
{{- end }}
{{- end -}}
