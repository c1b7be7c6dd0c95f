{{/*
What the API of nodes asks of its callers, and what it shows them. With nodes.closed the chart makes whatever is not given: a serving
certificate, a client certificate for the scheduler, and a token for everybody else, each in a Secret of its own.
*/}}

{{/* Not empty if the chart makes the serving certificate. Then plain HTTP is answered too, for clients that can trust no CA. */}}
{{- define "tidewatch.nodes.makesServing" -}}
{{- with .Values.nodes }}{{ if and .enabled .closed (not .tls.secret) }}true{{ end }}{{ end -}}
{{- end -}}

{{- define "tidewatch.nodes.makesClient" -}}
{{- with .Values.nodes }}{{ if and .enabled .closed (not .tls.clientCASecret) }}true{{ end }}{{ end -}}
{{- end -}}

{{- define "tidewatch.nodes.makesToken" -}}
{{- with .Values.nodes }}{{ if and .enabled .closed (not .token.secret) }}true{{ end }}{{ end -}}
{{- end -}}

{{/* The Secrets, made or given; empty if there is none. */}}
{{- define "tidewatch.nodes.servingSecret" -}}
{{- include "tidewatch.nodes.makesServing" . | empty | ternary .Values.nodes.tls.secret (printf "%s-serving" (include "tidewatch.nodes" .)) -}}
{{- end -}}

{{- define "tidewatch.nodes.clientCASecret" -}}
{{- include "tidewatch.nodes.makesClient" . | empty | ternary .Values.nodes.tls.clientCASecret (printf "%s-client" (include "tidewatch.nodes" .)) -}}
{{- end -}}

{{- define "tidewatch.nodes.tokenSecret" -}}
{{- include "tidewatch.nodes.makesToken" . | empty | ternary .Values.nodes.token.secret (printf "%s-token" (include "tidewatch.nodes" .)) -}}
{{- end -}}

{{/* The Secret with the scheduler's client certificate; empty if it needs none. */}}
{{- define "tidewatch.scheduler.clientSecret" -}}
{{- include "tidewatch.nodes.makesClient" . | empty | ternary .Values.nodes.scheduler.clientCertificateSecret (include "tidewatch.nodes.clientCASecret" .) -}}
{{- end -}}

{{/* The names in the serving certificate, as a YAML list: those of the Service, and those of `kubectl port-forward`. */}}
{{- define "tidewatch.nodes.names" -}}
{{- $name := include "tidewatch.nodes" . -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- list (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace) $inNamespace $name "localhost" | toYaml -}}
{{- end -}}

{{/*
Puts the data of the Secrets (in base64) into .Values._access, once for all templates. What is in the cluster stays; a certificate is
made anew if its names have changed. Each certificate has a CA of its own, whose key is kept nowhere.
*/}}
{{- define "tidewatch.nodes.access" -}}
{{- if not (hasKey .Values "_access") -}}
{{- $addresses := compact (list "127.0.0.1" .Values.nodes.service.clusterIP) -}}
{{- $names := include "tidewatch.nodes.names" . | fromYamlArray -}}
{{- $made := dict -}}
{{- if include "tidewatch.nodes.makesServing" . -}}
{{- $_ := set $made "serving" (include "tidewatch.nodes.certificate" (list . (include "tidewatch.nodes.servingSecret" .) (include "tidewatch.nodes" .) $names $addresses) | fromYaml) -}}
{{- end -}}
{{- if include "tidewatch.nodes.makesClient" . -}}
{{- $_ := set $made "client" (include "tidewatch.nodes.certificate" (list . (include "tidewatch.nodes.clientCASecret" .) (include "tidewatch.scheduler" .) list list) | fromYaml) -}}
{{- end -}}
{{- if include "tidewatch.nodes.makesToken" . -}}
{{- $old := (lookup "v1" "Secret" .Release.Namespace (include "tidewatch.nodes.tokenSecret" .)).data | default dict -}}
{{- $_ := set $made "token" (get $old "prometheusAuthToken" | default (randAlphaNum 48 | b64enc)) -}}
{{- end -}}
{{- $_ := set .Values "_access" $made -}}
{{- end -}}
{{- end -}}

{{/* (root, Secret, common name, names, addresses) - the Secret's annotation `tidewatch.io/names` and its data. */}}
{{- define "tidewatch.nodes.certificate" -}}
{{- $root := index . 0 -}}
{{- $names := concat (index . 3) (index . 4) | join "," -}}
{{- $old := lookup "v1" "Secret" $root.Release.Namespace (index . 1) -}}
{{- $data := $old.data | default dict -}}
{{- $kept := dig "metadata" "annotations" "tidewatch.io/names" "-" ($old | default dict) -}}
{{- if not (and (eq $kept $names) (get $data "ca.crt") (get $data "tls.crt") (get $data "tls.key")) -}}
{{- $days := 3650 -}}
{{- $ca := genCAWithKey (printf "%s-ca" (index . 2)) $days (genPrivateKey "ecdsa") -}}
{{- $pair := genSignedCertWithKey (index . 2) (index . 4) (index . 3) $days $ca (genPrivateKey "ecdsa") -}}
{{- $data = dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $pair.Cert) "tls.key" (b64enc $pair.Key) -}}
{{- end -}}
{{- dict "names" $names "data" (pick $data "ca.crt" "tls.crt" "tls.key") | toYaml -}}
{{- end -}}
