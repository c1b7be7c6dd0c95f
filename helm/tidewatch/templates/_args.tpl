{{/* The arguments of `tidewatch-adapter`, as a YAML list. */}}
{{- define "tidewatch.args" -}}
- serve
- --secure-port={{ .Values.listenPort }}
- --plain-bind-address=:{{ .Values.metrics.port }}
- --shutdown-delay={{ .Values.shutdownDelaySeconds }}s
- --config=/etc/tidewatch/rules
{{- include "tidewatch.prometheusArgs" . }}
- --metrics-relist-interval={{ .Values.metricsRelistInterval }}
{{- if .Values.crds.enabled }}
- --metric-rules
{{- end }}
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

{{/* Flags for the connection to Prometheus, each on a line of its own. */}}
{{- define "tidewatch.prometheusArgs" }}
- {{ printf "--prometheus-url=%s" (include "tidewatch.prometheusUrl" .) | quote }}
{{- with .Values.prometheus.matchers }}
- {{ printf "--prometheus-matchers=%s" . | quote }}
{{- end }}
{{- include "tidewatch.credentialArgs" .Values.prometheus.credentials }}
{{- end -}}

{{/* prometheus.url as it is where it names a port or a path; else with the port and the path that the values name. */}}
{{- define "tidewatch.prometheusUrl" -}}
{{- with .Values.prometheus -}}
{{- $url := tpl .url $ -}}
{{- $base := trimSuffix "/" $url -}}
{{- /* A part of it may be a password that nobody recognizes as one. */ -}}
{{- $shown := contains "@" $url | ternary "" (printf ": %q" $url) -}}
{{- if not (regexMatch "^https?://[^/?#[:space:]]+(/[^?#[:space:]]*)?$" $url) -}}
{{- fail (printf "prometheus.url%s is not the address of a Prometheus: write http://HOST or https://HOST, with :PORT and /PATH where it has them" $shown) -}}
{{- end -}}
{{- $hasPath := regexMatch "^https?://[^/]+/" $base -}}
{{- $hasPort := regexMatch "^https?://([^/:]+|\\[[^]]*\\]):[0-9]+(/|$)" $base -}}
{{- if and $hasPath .path -}}
{{- fail (printf "prometheus.path: prometheus.url%s has a path already: leave one of them out" $shown) -}}
{{- end -}}
{{- if $hasPath }}{{ $url }}{{ else }}{{ $base }}{{ if and .port (not $hasPort) }}:{{ .port }}{{ end }}{{ .path }}{{ end -}}
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
