{{/* Not empty if the page can be reached from outside of the pod. */}}
{{- define "tidewatch.recommender.showsPage" -}}
{{- if not (has .Values.recommender.page.bindAddress (list "127.0.0.1" "::1" "localhost")) }}true{{ end -}}
{{- end -}}

{{/* Not empty if the recommender asks Prometheus, so that the credentials for it are mounted. */}}
{{- define "tidewatch.recommender.asksPrometheus" -}}
{{- $config := include "tidewatch.recommender.config" . | fromYaml -}}
{{- if and .Values.prometheus.credentials.secret (or .Values.recommender.existingConfig $config.prometheus) }}true{{ end -}}
{{- end -}}

{{/*
The matchers of the series that this release's recommender exports, by labels that Prometheus adds. Without a monitor of
this chart, series without a namespace count too: those are from no pod that Prometheus has discovered.
*/}}
{{- define "tidewatch.recommenderMatchers" -}}
{{- $scraped := printf "%s-metrics" (include "tidewatch.recommender" .) -}}
{{- $monitor := .Values.recommender.enabled | ternary (include "tidewatch.monitor" (dict "context" . "component" "recommender")) "" -}}
{{- if .Values.rules.recommenderMatchers -}}
{{- /* Others follow on the same line: without comments, which would hide them, and without a comma at the end. */ -}}
{{- $stringOrComment := printf "%s|%s" (include "tidewatch.stringInQuery" .) (include "tidewatch.commentInQuery" .) -}}
{{ regexReplaceAll $stringOrComment .Values.rules.recommenderMatchers "${1}" | trim | trimSuffix "," }}
{{- else if eq $monitor "ServiceMonitor" -}}
namespace="{{ .Release.Namespace }}",service="{{ $scraped }}"
{{- else if eq $monitor "PodMonitor" -}}
namespace="{{ .Release.Namespace }}",job="{{ .Release.Namespace }}/{{ $scraped }}"
{{- else -}}
namespace=~"|{{ .Release.Namespace }}"
{{- end -}}
{{- end -}}

{{/* The chart's Prometheus as `prometheus:` of the recommender's configuration, as JSON. */}}
{{- define "tidewatch.recommender.chartPrometheus" -}}
{{- $credentials := .Values.prometheus.credentials -}}
{{- $connection := dict "url" (include "tidewatch.prometheusUrl" .) -}}
{{- with .Values.prometheus.matchers }}{{ $_ := set $connection "matchers" . }}{{ end -}}
{{- range $name, $key := dict "ca" "caFile" "token" "tokenFile" "certificate" "certFile" "key" "keyFile" -}}
{{- with index $credentials $name }}{{ $_ := set $connection $key (printf "/etc/tidewatch/prometheus/%s" .) }}{{ end -}}
{{- end -}}
{{- if and $credentials.username $credentials.password -}}
{{- $password := printf "/etc/tidewatch/prometheus/%s" $credentials.password -}}
{{- $_ := set $connection "basicAuth" (dict "username" $credentials.username "passwordFile" $password) -}}
{{- end -}}
{{- toJson $connection -}}
{{- end -}}

{{/*
What is written below a text that has queries and does not say where Prometheus is: below, so that its lines keep their
numbers. Empty if nothing can follow it (JSON, a flow mapping, several documents).
*/}}
{{- define "tidewatch.recommender.addition" -}}
{{- $given := .Values.recommender.config -}}
{{- $connection := include "tidewatch.recommender.chartPrometheus" . -}}
{{- $added := printf "%s# The chart's value `prometheus`, because nothing above says where Prometheus is.\nprometheus: %s\n" (hasSuffix "\n" $given | ternary "" "\n") $connection -}}
{{- $read := printf "%s%s" $given $added | fromYaml -}}
{{- if and (hasKey $read "prometheus") (eq (toJson (omit $read "prometheus")) (toJson (fromYaml $given))) }}{{ $added }}{{ end -}}
{{- end -}}

{{/*
Not empty if the configuration has queries, or counts objects that may have some, and no `prometheus:`. Whatever is no
mapping is refused elsewhere.
*/}}
{{- define "tidewatch.recommender.lacksPrometheus" -}}
{{- $config := include "tidewatch.recommender.given" . | fromYaml -}}
{{- if and (not (hasKey $config "prometheus")) (kindIs "slice" $config.recommendations) -}}
{{- $objects := kindIs "map" $config.recommendationObjects | ternary $config.recommendationObjects dict -}}
{{- $asks := $objects.enabled -}}
{{- range $config.recommendations -}}
{{- $each := kindIs "map" . | ternary . dict -}}
{{- $proportional := kindIs "map" $each.proportional | ternary $each.proportional dict -}}
{{- $drivers := kindIs "map" $proportional.drivers | ternary $proportional.drivers dict -}}
{{- if or $each.predictive $each.resources $drivers.query }}{{ $asks = true }}{{ end -}}
{{- end -}}
{{- if $asks }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* The folder of the history, as an absolute path. A relative one is below the working directory. */}}
{{- define "tidewatch.recommender.state" -}}
{{- $state := (include "tidewatch.recommender.config" . | fromYaml).state | default "state" -}}
{{- isAbs $state | ternary (clean $state) (clean (printf "/var/lib/tidewatch/%s" $state)) -}}
{{- end -}}

{{/* The names by which the page may be asked besides localhost: given ones, and where it can be reached the pod's address and Services. */}}
{{- define "tidewatch.recommender.hosts" -}}
{{- $hosts := .Values.recommender.page.allowedHosts -}}
{{- if include "tidewatch.recommender.showsPage" . -}}
{{- $hosts = append $hosts "$(POD_IP)" -}}
{{- range $service := list (include "tidewatch.recommender" .) (printf "%s-metrics" (include "tidewatch.recommender" .)) -}}
{{- $name := printf "%s.%s" $service $.Release.Namespace -}}
{{- $hosts = concat $hosts (list $service $name (printf "%s.svc" $name) (printf "%s.svc.cluster.local" $name)) -}}
{{- end -}}
{{- end -}}
{{- join "," $hosts -}}
{{- end -}}

{{/* The arguments of `tidewatch-recommender`, as a YAML list. */}}
{{- define "tidewatch.recommender.args" -}}
{{- with .Values.recommender -}}
- run
- --config=/etc/tidewatch/recommender/recommender.yaml
- {{ printf "--bind-address=%s" .page.bindAddress | quote }}
- --port={{ .page.port }}
- --plain-bind-address=:{{ .metricsPort }}
- --shutdown-delay={{ .shutdownDelaySeconds }}s
{{- end }}
{{- with include "tidewatch.recommender.hosts" . }}
- {{ printf "--allowed-hosts=%s" . | quote }}
{{- end }}
- --log-format={{ .Values.logFormat }}
- --log-level={{ .Values.logLevel }}
{{- range .Values.recommender.extraArguments }}
- {{ . | quote }}
{{- end }}
{{- end -}}
