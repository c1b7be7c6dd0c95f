{{/* The SchedulingConfiguration as a text. As JSON where it is a mapping, since Helm would write large numbers as 1e+06 in YAML. */}}
{{- define "tidewatch.nodes.config" -}}
{{- with .Values.nodes.config -}}
{{- kindIs "string" . | ternary . (toPrettyJson .) -}}
{{- else -}}
{{- .Files.Get "files/scheduler/scheduling.yaml" -}}
{{- end -}}
{{- end -}}

{{/* The arguments of `tidewatch-adapter`, as a YAML list. */}}
{{- define "tidewatch.nodes.args" -}}
{{- $settings := .Values.nodes -}}
- nodes
- --port={{ $settings.port }}
- --plain-bind-address=:{{ $settings.metricsPort }}
- --shutdown-delay={{ $settings.shutdownDelaySeconds }}s
- --refresh-interval={{ $settings.refreshInterval }}
- --node-metrics={{ join "," $settings.nodeMetrics }}
- --state=/state/nodes.bin
- --scheduling-config=/etc/tidewatch/scheduling/scheduling.yaml
{{- include "tidewatch.prometheusArgs" . }}
{{- if include "tidewatch.nodes.servingSecret" . }}
- --tls-cert-file=/etc/tidewatch/serving/tls.crt
- --tls-private-key-file=/etc/tidewatch/serving/tls.key
{{- end }}
{{- if include "tidewatch.nodes.makesServing" . }}
- --tls-optional
{{- end }}
{{- if include "tidewatch.nodes.clientCASecret" . }}
- --client-ca-file=/etc/tidewatch/client-ca/ca.crt
{{- end }}
{{- if include "tidewatch.nodes.tokenSecret" . }}
- --token-file=/etc/tidewatch/token/{{ $settings.token.key }}
{{- end }}
{{- if $settings.openWatcher }}
- --open-watcher
{{- end }}
- --log-format={{ .Values.logFormat }}
- --log-level={{ .Values.logLevel }}
{{- range $settings.extraArguments }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The volumes with Secrets, as a YAML list of {name, secret, key}, `key` if only one is mounted; each is mounted below /etc/tidewatch. */}}
{{- define "tidewatch.nodes.secrets" -}}
{{- with include "tidewatch.nodes.servingSecret" . }}
- {name: serving, secret: {{ . | quote }}}
{{- end }}
{{- with include "tidewatch.nodes.clientCASecret" . }}
# The CA alone: the key of the client certificate is none of the server's business.
- {name: client-ca, secret: {{ . | quote }}, key: ca.crt}
{{- end }}
{{- with include "tidewatch.nodes.tokenSecret" . }}
- {name: token, secret: {{ . | quote }}}
{{- end }}
{{- with .Values.prometheus.credentials.secret }}
- {name: prometheus, secret: {{ . | quote }}}
{{- end }}
{{- end -}}

{{/* The configuration of the second scheduler: that for the default scheduler with another name, lease and address of the extender. */}}
{{- define "tidewatch.scheduler.config" -}}
{{- $nodes := .Values.nodes -}}
{{- $config := .Files.Get "files/scheduler/default-scheduler.yaml" | fromYaml -}}
{{- $extender := first $config.extenders -}}
{{- $serving := include "tidewatch.nodes.servingSecret" . -}}
{{- $scheme := empty $serving | ternary "http" "https" -}}
{{- $_ := set $extender "urlPrefix" (printf "%s://%s.%s.svc:%d/scheduler" $scheme (include "tidewatch.nodes" .) .Release.Namespace (int $nodes.port)) -}}
{{- $_ := set $extender "weight" (int $nodes.scheduler.weight) -}}
{{- $_ := set $extender "httpTimeout" $nodes.scheduler.timeout -}}
{{- if $serving -}}
{{- $tls := dict "caFile" "/etc/tidewatch/serving-ca/ca.crt" -}}
{{- if include "tidewatch.scheduler.clientSecret" . -}}
{{- $_ := set $tls "certFile" "/etc/tidewatch/client/tls.crt" -}}
{{- $_ := set $tls "keyFile" "/etc/tidewatch/client/tls.key" -}}
{{- end -}}
{{- $_ := set $extender "tlsConfig" $tls -}}
{{- else -}}
{{- $extender = omit $extender "tlsConfig" -}}
{{- end -}}
{{- $_ := set $extender "enableHTTPS" (not (empty $serving)) -}}
{{- $_ := set $config "extenders" (list $extender) -}}
{{- $_ := set (first $config.profiles) "schedulerName" $nodes.scheduler.name -}}
{{- $_ := set $config "leaderElection" (dict "leaderElect" true "resourceNamespace" .Release.Namespace "resourceName" (include "tidewatch.scheduler" .)) -}}
{{- omit $config "clientConnection" | toYaml -}}
{{- end -}}

{{/* A binding whose name depends on the pods' schedulerName alone, so Helm refuses a second release that would place the same pods. */}}
{{- define "tidewatch.scheduler.binding" -}}
{{ .Values.nodes.scheduler.name }}-scheduler-as-kube-scheduler
{{- end -}}

{{- define "tidewatch.scheduler.image" -}}
{{- with .Values.nodes.scheduler.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" $.Capabilities.KubeVersion.Version) }}{{ end }}
{{- end -}}
{{- end -}}
