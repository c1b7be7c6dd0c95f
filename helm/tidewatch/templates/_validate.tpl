{{/* Checks that the schema cannot express. Each message names the value and the repair. */}}
{{- define "tidewatch.validate" -}}
{{- $rules := .Values.rules -}}
{{- if not (or .Values.adapter.enabled .Values.recommender.enabled .Values.nodes.enabled) -}}
{{- fail "adapter.enabled, recommender.enabled and nodes.enabled are all false, so nothing would be installed: enable one of them" -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" (include "tidewatch.fullname" .)) -}}
{{- fail (printf "the names of Services must begin with a letter, and those of the release %s would not: set fullnameOverride" .Release.Name) -}}
{{- end -}}
{{- include "tidewatch.validatePrometheus" . -}}
{{- include "tidewatch.validateArguments" . -}}
{{- include "tidewatch.validateAccounts" . -}}
{{- if .Values.recommender.enabled }}{{ include "tidewatch.validateRecommender" . }}{{ end -}}
{{- include "tidewatch.validateNodes" . -}}
{{- if and $rules.existing (or (and (kindIs "slice" $rules.shipped) $rules.shipped) $rules.default $rules.custom $rules.external $rules.resource $rules.prometheus) -}}
{{- fail (printf "rules.existing: the rules come from the ConfigMap %s, so rules.default, rules.shipped, rules.custom, rules.external, rules.resource and rules.prometheus would have no effect: move them there, or leave rules.existing empty" $rules.existing) -}}
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
{{- if and $credentials.password (not $credentials.username) -}}
{{- fail "prometheus.credentials: password is set without username, so nobody could log in with it: set both, or neither" -}}
{{- end -}}
{{- if and $credentials.token $credentials.username -}}
{{- fail "prometheus.credentials: token and username are two ways to log in, and the programs accept only one of them: set only one" -}}
{{- end -}}
{{- range .Values.rbac.objectKinds -}}
{{- if or (has "*" .apiGroups) (has "*" .resources) (has "secrets" .resources) -}}
{{- fail (printf "rbac.objectKinds: the adapter must not read Secrets or all kinds: list the kinds that Object metrics describe instead of %s" (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- if and (eq (toString .Values.metrics.serviceMonitor.enabled) "true") .Values.metrics.podMonitor.enabled -}}
{{- fail "metrics: serviceMonitor and podMonitor would both scrape each pod, and every count would be doubled: enable only one" -}}
{{- end -}}
{{- if eq (int .Values.listenPort) (int .Values.metrics.port) -}}
{{- fail (printf "listenPort and metrics.port are both %d: give each its own port" (int .Values.listenPort)) -}}
{{- end -}}
{{- end -}}

{{/* Credentials in the addresses of Prometheus servers, and matchers that the programs could not read. */}}
{{- define "tidewatch.validatePrometheus" -}}
{{- $url := tpl .Values.prometheus.url . -}}
{{- include "tidewatch.refuseCredentials" (list "prometheus.url" $url "name the Secret that has them in prometheus.credentials") -}}
{{- if contains "@" $url }}{{ $_ := include "tidewatch.prometheusUrl" . }}{{ end -}}
{{- include "tidewatch.refuseMatchers" (list "prometheus.matchers" .Values.prometheus.matchers) -}}
{{- include "tidewatch.refuseMatchers" (list "rules.recommenderMatchers" .Values.rules.recommenderMatchers) -}}
{{- $inFiles := "write basicAuth with username and passwordFile" -}}
{{- range $index, $backend := .Values.rules.prometheus -}}
{{- $which := include "tidewatch.backendName" (list $index $backend) -}}
{{- include "tidewatch.refuseCredentials" (list (printf "rules.prometheus: the url of %s" $which) .url $inFiles) -}}
{{- include "tidewatch.refuseMatchers" (list (printf "rules.prometheus: the matchers of %s" $which) .matchers) -}}
{{- end -}}
{{- if .Values.recommender.enabled -}}
{{- $connection := (include "tidewatch.recommender.config" . | fromYaml).prometheus -}}
{{- if kindIs "map" $connection -}}
{{- include "tidewatch.refuseCredentials" (list "recommender.config: the url of prometheus" $connection.url $inFiles) -}}
{{- include "tidewatch.refuseMatchers" (list "recommender.config: the matchers of prometheus" $connection.matchers) -}}
{{- else if kindIs "slice" $connection -}}
{{- range $index, $backend := $connection -}}
{{- if kindIs "map" . -}}
{{- $which := include "tidewatch.backendName" (list $index $backend) -}}
{{- include "tidewatch.refuseCredentials" (list (printf "recommender.config: the url of %s" $which) .url $inFiles) -}}
{{- include "tidewatch.refuseMatchers" (list (printf "recommender.config: the matchers of %s" $which) .matchers) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (index in the list, backend): how messages name it */}}
{{- define "tidewatch.backendName" -}}
{{- with (index . 1).name }}the backend {{ . }}{{ else }}prometheus[{{ index . 0 }}]{{ end -}}
{{- end -}}

{{/*
(place, address, what to do instead). The address is not repeated. An at sign may be in a path, which follows a host, or an
IPv6 address with a port; anywhere else, what precedes it may be a user and a password, which may contain any character:
its first digits may look like a port. The schema accepts each address with an at sign, since its own message would repeat
it.
*/}}
{{- define "tidewatch.refuseCredentials" -}}
{{- $url := toString (index . 1) -}}
{{- if and (contains "@" $url) (not (regexMatch "^https?://([^/?#@:\\[\\]]+|\\[[^]/?#@]*\\](:[0-9]{1,5})?)/" $url)) -}}
{{- fail (printf "%s contains credentials, which would be visible to everybody who may read pods or ConfigMaps: remove them, and %s (an at sign in a path is written as %%40)" (index . 0) (index . 2)) -}}
{{- end -}}
{{- end -}}

{{/* (place, matchers), which may have comments, as in every query */}}
{{- define "tidewatch.refuseMatchers" -}}
{{- $string := include "tidewatch.stringInQuery" . -}}
{{- $space := printf `(\s|%s([\n\r]|$))*` (include "tidewatch.commentInQuery" .) -}}
{{- $matcher := printf `%[1]s([a-zA-Z_][a-zA-Z0-9_]*|%[2]s)%[1]s(=~|!~|!=|=)%[1]s%[2]s%[1]s` $space $string -}}
{{- if and (index . 1) (not (regexMatch (printf `^%[1]s(,%[1]s)*,?%[2]s$` $matcher $space) (toString (index . 1)))) -}}
{{- fail (printf "%s: %v is not a list of matchers: write 'LABEL=\"VALUE\"' in a values file, since a shell removes the double quotes from --set" (index . 0) (index . 1)) -}}
{{- end -}}
{{- end -}}

{{/* Patterns of a string and of a comment in a query. */}}
{{- define "tidewatch.stringInQuery" -}}
("([^"\\\n]|\\.)*"|'([^'\\\n]|\\.)*'|\x60[^\x60]*\x60)
{{- end -}}
{{- define "tidewatch.commentInQuery" -}}
#[^\n\r]*
{{- end -}}

{{/* Flags that Services, probes or mounts depend on are set by values of their own: one more would win over them. */}}
{{- define "tidewatch.validateArguments" -}}
{{- $flags := dict
    "extraArguments" (dict "given" .Values.extraArguments "values" (dict "secure-port" "listenPort" "plain-bind-address" "metrics.port" "shutdown-delay" "shutdownDelaySeconds"))
    "recommender.extraArguments" (dict "given" .Values.recommender.extraArguments "values" (dict "config" "recommender.config" "port" "recommender.page.port" "bind-address" "recommender.page.bindAddress" "plain-bind-address" "recommender.metricsPort" "shutdown-delay" "recommender.shutdownDelaySeconds"))
    "nodes.extraArguments" (dict "given" .Values.nodes.extraArguments "values" (dict "scheduling-config" "nodes.config" "port" "nodes.port" "plain-bind-address" "nodes.metricsPort" "shutdown-delay" "nodes.shutdownDelaySeconds"))
-}}
{{- range $key, $flag := $flags -}}
{{- range $flag.given -}}
{{- $name := . | trimPrefix "--" | splitList "=" | first -}}
{{- if hasKey $flag.values $name -}}
{{- fail (printf "%s: the chart sets --%s itself: set %s instead" $key $name (get $flag.values $name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Components may share a service account, but only one may create it: Helm would fail in the middle of the installation. */}}
{{- define "tidewatch.validateAccounts" -}}
{{- $nodes := .Values.nodes -}}
{{- $accounts := list
    (list "serviceAccount" .Values.adapter.enabled .Values.serviceAccount.create (include "tidewatch.serviceAccount" .))
    (list "recommender.serviceAccount" .Values.recommender.enabled .Values.recommender.serviceAccount.create (include "tidewatch.recommender.serviceAccount" .))
    (list "nodes.serviceAccount" $nodes.enabled $nodes.serviceAccount.create (include "tidewatch.nodes.serviceAccount" .))
    (list "nodes.scheduler.serviceAccount" $nodes.scheduler.enabled $nodes.scheduler.serviceAccount.create (include "tidewatch.scheduler.serviceAccount" .))
-}}
{{- $creators := dict -}}
{{- range $accounts -}}
{{- $key := index . 0 -}}{{- $name := index . 3 -}}
{{- if and (index . 1) (index . 2) -}}
{{- with get $creators $name -}}
{{- fail (printf "%s and %s would both create %s: set %s.create=false, or give each a name of its own" . $key $name $key) -}}
{{- end -}}
{{- $_ := set $creators $name $key -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tidewatch.validateRecommender" -}}
{{- $settings := .Values.recommender -}}
{{- $rbac := $settings.rbac -}}
{{- if and $settings.existingConfig $settings.config -}}
{{- fail (printf "recommender: the configuration comes from the ConfigMap %s, so recommender.config would have no effect: move it there, or leave recommender.existingConfig empty" $settings.existingConfig) -}}
{{- end -}}
{{- if not (or $settings.existingConfig $settings.config) -}}
{{- fail "recommender.enabled is true, but there is no configuration: set recommender.config, such as --set-file recommender.config=recommender.yaml, or name a ConfigMap in recommender.existingConfig" -}}
{{- end -}}
{{- if and (not $settings.existingConfig) (or $rbac.targets $rbac.recommendations $rbac.configMaps $rbac.counts $rbac.clusterSizes) -}}
{{- fail "recommender.rbac: targets, recommendations, configMaps, counts and clusterSizes are derived from recommender.config and would have no effect: remove them" -}}
{{- end -}}
{{- if not $settings.existingConfig }}{{ include "tidewatch.validateConfig" . }}{{ end -}}
{{- $connection := (include "tidewatch.recommender.config" . | fromYaml).prometheus -}}
{{- if and .Values.prometheus.matchers (kindIs "map" $connection) (not (hasKey ($connection | default dict) "matchers")) -}}
{{- fail "prometheus.matchers is set, but prometheus of recommender.config has no matchers, so the recommender would read the series of every cluster: write matchers there, too" -}}
{{- end -}}
{{- if and .Values.prometheus.matchers (kindIs "slice" $connection) -}}
{{- /* Another address may be that of one cluster alone. */ -}}
{{- range $index, $backend := $connection -}}
{{- if and (kindIs "map" .) (eq (trimSuffix "/" (toString .url)) (trimSuffix "/" (include "tidewatch.prometheusUrl" $))) (not (hasKey . "matchers")) -}}
{{- fail (printf "prometheus.matchers is set, but %s of recommender.config has no matchers and the same address, so the recommender would read the series of every cluster: write matchers there, too" (include "tidewatch.backendName" (list $index $backend))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $needs := include "tidewatch.recommender.needs" . | fromYaml -}}
{{- if and (not $needs.lease.enabled) (gt (int $settings.replicas) 1) -}}
{{- fail (printf "recommender: leader election is off, so %d replicas would all scale the same targets: set recommender.replicas=1, or turn leader election on" (int $settings.replicas)) -}}
{{- end -}}
{{- include "tidewatch.recommender.refuseSharing" . -}}
{{- if eq (int $settings.page.port) (int $settings.metricsPort) -}}
{{- fail (printf "recommender.page.port and recommender.metricsPort are both %d: give each its own port" (int $settings.metricsPort)) -}}
{{- end -}}
{{- end -}}

{{/* Checks the parts of the configuration from which the chart derives something. The program checks all of it. */}}
{{- define "tidewatch.validateConfig" -}}
{{- $config := include "tidewatch.recommender.config" . | fromYaml -}}
{{- if hasKey $config "Error" -}}
{{- fail (printf "recommender.config is not a YAML mapping: %s" $config.Error) -}}
{{- end -}}
{{- if not (and (eq (toString $config.apiVersion) "tidewatch.io/v1alpha1") (eq (toString $config.kind) "RecommenderConfiguration")) -}}
{{- fail "recommender.config: begin it with apiVersion: tidewatch.io/v1alpha1 and kind: RecommenderConfiguration" -}}
{{- end -}}
{{- if $config.listen -}}
{{- fail "recommender.config: `listen` would have no effect, because the chart sets the addresses by flags: use recommender.page and recommender.metricsPort" -}}
{{- end -}}
{{- if not (kindIs "slice" $config.recommendations) -}}
{{- fail "recommender.config: `recommendations` is not a list: write `recommendations: []`, or list them" -}}
{{- end -}}
{{- range $index, $each := $config.recommendations -}}
{{- $where := printf "recommender.config: recommendations[%d]" $index -}}
{{- if not (and (kindIs "map" $each) $each.name) -}}
{{- fail (printf "%s has no name: write `name: NAME`" $where) -}}
{{- end -}}
{{- if not (and (kindIs "slice" ($each.targets | default list)) (kindIs "slice" ($each.outputs | default list))) -}}
{{- fail (printf "%s (%s): `targets` and `outputs` are lists" $where $each.name) -}}
{{- end -}}
{{- range $target := $each.targets -}}
{{- if not (and (kindIs "map" $target) $target.apiVersion $target.kind $target.namespace $target.name) -}}
{{- fail (printf "%s (%s): a target needs apiVersion, kind, namespace and name, not %s" $where $each.name (toJson $target)) -}}
{{- end -}}
{{- end -}}
{{- with $each.proportional -}}
{{- if not (and (kindIs "map" .) (kindIs "map" (.drivers | default dict)) (kindIs "map" (.configMap | default dict))) -}}
{{- fail (printf "%s (%s): `proportional`, its `drivers` and its `configMap` are mappings" $where $each.name) -}}
{{- end -}}
{{- end -}}
{{- with $each.clusterSize }}{{ include "tidewatch.validateSizes" (list $each (printf "%s (%s)" $where $each.name)) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* (recommendation, its place in the configuration) */}}
{{- define "tidewatch.validateSizes" -}}
{{- $each := index . 0 -}}{{- $where := index . 1 -}}
{{- $groups := kindIs "map" $each.clusterSize | ternary (dig "nodeGroups" dict (kindIs "map" $each.clusterSize | ternary $each.clusterSize dict)) "" -}}
{{- if not (or (kindIs "map" $groups) (kindIs "slice" $groups)) -}}
{{- fail (printf "%s: `clusterSize` is a mapping, and its `nodeGroups` are a list or a mapping" $where) -}}
{{- end -}}
{{- $named := kindIs "map" $groups | ternary $groups dict -}}
{{- $priorities := $each.clusterSize.priorities | default dict -}}
{{- if not (and (kindIs "map" ($named.clusterAPI | default dict)) (kindIs "map" $priorities) (kindIs "map" ($priorities.configMap | default dict))) -}}
{{- fail (printf "%s: `clusterAPI`, `priorities` and its `configMap` are mappings" $where) -}}
{{- end -}}
{{- if and (hasKey $named "clusterAPI") (not (or (dig "namespaces" list ($named.clusterAPI | default dict)) (dig "namespace" "" ($named.clusterAPI | default dict)))) -}}
{{- fail (printf "%s: `clusterAPI.namespaces` is missing: list the namespaces of your node groups, such as [capi-system]" $where) -}}
{{- end -}}
{{- with $each.capacityBuffer -}}
{{- if not (and (kindIs "map" .) .namespace .name) -}}
{{- fail (printf "%s: `capacityBuffer` needs namespace and name" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tidewatch.validateNodes" -}}
{{- $settings := .Values.nodes -}}
{{- $scheduler := $settings.scheduler -}}
{{- if and $scheduler.enabled (not $settings.enabled) -}}
{{- fail "nodes.scheduler.enabled is true, but the extender that it asks is not installed: set nodes.enabled=true" -}}
{{- end -}}
{{- if and $settings.existingConfig $settings.config -}}
{{- fail (printf "nodes: the configuration comes from the ConfigMap %s, so nodes.config would have no effect: move it there, or leave nodes.existingConfig empty" $settings.existingConfig) -}}
{{- end -}}
{{- with $settings.config -}}
{{- $config := kindIs "string" . | ternary . (toJson .) | fromYaml -}}
{{- if hasKey $config "Error" -}}
{{- fail (printf "nodes.config is not a YAML mapping: %s" $config.Error) -}}
{{- end -}}
{{- if not (and (eq (toString $config.apiVersion) "tidewatch.io/v1alpha1") (eq (toString $config.kind) "SchedulingConfiguration")) -}}
{{- fail "nodes.config: begin it with apiVersion: tidewatch.io/v1alpha1 and kind: SchedulingConfiguration" -}}
{{- end -}}
{{- end -}}
{{- if eq (int $settings.port) (int $settings.metricsPort) -}}
{{- fail (printf "nodes.port and nodes.metricsPort are both %d: give each its own port" (int $settings.port)) -}}
{{- end -}}
{{- if and $settings.tls.clientCASecret (not (include "tidewatch.nodes.servingSecret" .)) -}}
{{- fail "nodes.tls.clientCASecret is set, but client certificates need HTTPS: name the Secret of the serving certificate in nodes.tls.secret" -}}
{{- end -}}
{{- if and $scheduler.clientCertificateSecret (include "tidewatch.nodes.makesClient" .) -}}
{{- fail "nodes.scheduler.clientCertificateSecret is set, but the chart makes the client certificates (nodes.closed), whose CA signed no other: name the Secret of your CA in nodes.tls.clientCASecret, or remove it" -}}
{{- end -}}
{{- if and $scheduler.clientCertificateSecret (not (include "tidewatch.nodes.servingSecret" .)) -}}
{{- fail "nodes.scheduler.clientCertificateSecret is set, but the extender is asked over plain HTTP, where no certificate is sent: set nodes.tls.secret, or remove it" -}}
{{- end -}}
{{- if and $scheduler.enabled $settings.tls.clientCASecret (not $scheduler.clientCertificateSecret) -}}
{{- fail "nodes.tls.clientCASecret requires a client certificate of the scheduler: name its Secret in nodes.scheduler.clientCertificateSecret" -}}
{{- end -}}
{{- if and $scheduler.enabled (eq $scheduler.name "default-scheduler") -}}
{{- fail "nodes.scheduler.name is default-scheduler, so two schedulers would place the same pods: choose another name, or change the configuration of the default scheduler instead (docs/nodes.md)" -}}
{{- end -}}
{{- if and $scheduler.enabled (hasSuffix ":" (include "tidewatch.scheduler.image" .)) -}}
{{- fail (printf "nodes.scheduler.image.tag: Helm was told the cluster's version as %s, and the tags of images have a patch version too: set it to the version of the server that `kubectl version` prints" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and $scheduler.enabled $scheduler.rbac.create -}}
{{- with include "tidewatch.otherRelease" (list $ (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" (include "tidewatch.scheduler.binding" $))) -}}
{{- fail (printf "pods with schedulerName: %s are placed by the second scheduler of the Helm release %s: set nodes.scheduler.name to another name" $scheduler.name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
