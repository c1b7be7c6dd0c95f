{{/* What the schema cannot say; each message names the value and what to do. */}}
{{- define "tidewatch.validate" -}}
{{- $rules := .Values.rules -}}
{{- if and $rules.existing (or $rules.default $rules.custom $rules.external $rules.resource) -}}
{{- fail (printf "rules.existing: the rules come from the ConfigMap %s, so rules.default, rules.custom, rules.external and rules.resource would mean nothing: move them there, or leave rules.existing empty" $rules.existing) -}}
{{- end -}}
{{- if and (eq (toString .Values.apiServices.resource.v1beta1) "true") (not (or $rules.resource $rules.existing)) -}}
{{- fail "apiServices.resource.v1beta1 is true, and no rule says what CPU and memory are, so `kubectl top` and HPAs on CPU would end: give rules.resource, or leave it at auto" -}}
{{- end -}}
{{- $given := .Values.certificates.given -}}
{{- if and (eq .Values.certificates.mode "given") (not (and $given.secret $given.caBundle)) -}}
{{- fail "certificates.mode is given: name the Secret (certificates.given.secret) and give the CA that signed its certificate (--set-file certificates.given.caBundle=ca.crt)" -}}
{{- end -}}
{{- if and (ne .Values.certificates.mode "given") (or $given.secret $given.caBundle) -}}
{{- fail (printf "certificates.given has values, and certificates.mode is %s: set certificates.mode=given, or remove them" .Values.certificates.mode) -}}
{{- end -}}
{{- $credentials := .Values.prometheus.credentials -}}
{{- if and (not $credentials.secret) (or $credentials.ca $credentials.token $credentials.password $credentials.certificate $credentials.key) -}}
{{- fail "prometheus.credentials: keys are given and no Secret that has them: name it in prometheus.credentials.secret" -}}
{{- end -}}
{{- if ne (not $credentials.certificate) (not $credentials.key) -}}
{{- fail "prometheus.credentials: certificate and key belong together: give both, or neither" -}}
{{- end -}}
{{- range .Values.rbac.objectKinds -}}
{{- if or (has "*" .apiGroups) (has "*" .resources) (has "secrets" .resources) -}}
{{- fail (printf "rbac.objectKinds: the adapter reads no Secrets and no kinds that nobody named: name those that Object metrics describe, in place of %s" (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- fail "metrics: serviceMonitor and podMonitor would both scrape each pod, and every count would be doubled: enable one" -}}
{{- end -}}
{{- if eq (int .Values.listenPort) (int .Values.metrics.port) -}}
{{- fail (printf "listenPort and metrics.port are both %d: give each a port of its own" (int .Values.listenPort)) -}}
{{- end -}}
{{- end -}}
