{{/* Checks that the schema cannot express. Each message names the value and the repair. */}}
{{- define "tidewatch.validate" -}}
{{- $rules := .Values.rules -}}
{{- if and $rules.existing (or $rules.default $rules.custom $rules.external $rules.resource) -}}
{{- fail (printf "rules.existing: the rules come from the ConfigMap %s, so rules.default, rules.custom, rules.external and rules.resource would have no effect: move them there, or leave rules.existing empty" $rules.existing) -}}
{{- end -}}
{{- if and (eq (toString .Values.apiServices.resource.v1beta1) "true") (not (or $rules.resource $rules.existing)) -}}
{{- fail "apiServices.resource.v1beta1 is true, but no rule defines CPU and memory, so `kubectl top` and HPAs on CPU would stop working: set rules.resource, or leave the value at auto" -}}
{{- end -}}
{{- $given := .Values.certificates.given -}}
{{- if and (eq .Values.certificates.mode "given") (not (and $given.secret $given.caBundle)) -}}
{{- fail "certificates.mode is given: name the Secret (certificates.given.secret) and set the CA that signed its certificate (--set-file certificates.given.caBundle=ca.crt)" -}}
{{- end -}}
{{- if and (ne .Values.certificates.mode "given") (or $given.secret $given.caBundle) -}}
{{- fail (printf "certificates.given has values, but certificates.mode is %s: set certificates.mode=given, or remove them" .Values.certificates.mode) -}}
{{- end -}}
{{- $credentials := .Values.prometheus.credentials -}}
{{- if and (not $credentials.secret) (or $credentials.ca $credentials.token $credentials.password $credentials.certificate $credentials.key) -}}
{{- fail "prometheus.credentials: keys are set, but not the Secret that contains them: name it in prometheus.credentials.secret" -}}
{{- end -}}
{{- if ne (not $credentials.certificate) (not $credentials.key) -}}
{{- fail "prometheus.credentials: certificate and key belong together: set both, or neither" -}}
{{- end -}}
{{- range .Values.rbac.objectKinds -}}
{{- if or (has "*" .apiGroups) (has "*" .resources) (has "secrets" .resources) -}}
{{- fail (printf "rbac.objectKinds: the adapter must not read Secrets or all kinds: list the kinds that Object metrics describe instead of %s" (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- fail "metrics: serviceMonitor and podMonitor would both scrape each pod, and every count would be doubled: enable only one" -}}
{{- end -}}
{{- if eq (int .Values.listenPort) (int .Values.metrics.port) -}}
{{- fail (printf "listenPort and metrics.port are both %d: give each its own port" (int .Values.listenPort)) -}}
{{- end -}}
{{- end -}}
