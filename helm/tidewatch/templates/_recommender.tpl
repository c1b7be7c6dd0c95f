{{/* Not empty if the page can be reached from outside of the pod. */}}
{{- define "tidewatch.recommender.showsPage" -}}
{{- if not (has .Values.recommender.page.bindAddress (list "127.0.0.1" "::1" "localhost")) }}true{{ end -}}
{{- end -}}

{{/* Not empty if the recommender asks Prometheus, so that the credentials for it are mounted. */}}
{{- define "tidewatch.recommender.asksPrometheus" -}}
{{- $config := include "tidewatch.recommender.config" . | fromYaml -}}
{{- if and .Values.prometheus.credentials.secret (or .Values.recommender.existingConfig $config.prometheus) }}true{{ end -}}
{{- end -}}

{{/* The folder of the history, as an absolute path. A relative one is below the working directory. */}}
{{- define "tidewatch.recommender.state" -}}
{{- $state := (include "tidewatch.recommender.config" . | fromYaml).state | default "state" -}}
{{- isAbs $state | ternary (clean $state) (clean (printf "/var/lib/tidewatch/%s" $state)) -}}
{{- end -}}

{{/* The arguments of `tidewatch-recommender`, as a YAML list. */}}
{{- define "tidewatch.recommender.args" -}}
{{- with .Values.recommender -}}
- run
- --config=/etc/tidewatch/recommender/recommender.yaml
- {{ printf "--bind-address=%s" .page.bindAddress | quote }}
- --port={{ .page.port }}
- --plain-bind-address=:{{ .metricsPort }}
{{- end }}
- --log-format={{ .Values.logFormat }}
- --log-level={{ .Values.logLevel }}
{{- range .Values.recommender.extraArguments }}
- {{ . | quote }}
{{- end }}
{{- end -}}
