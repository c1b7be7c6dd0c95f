{{/* What the recommender may do in the cluster. `recommender/configuration/rights.py` states the same rights; a test compares the two. */}}

{{/* The recommender's configuration as it is installed, a text or JSON; an empty mapping if it comes from an existing ConfigMap. */}}
{{- define "tidewatch.recommender.config" -}}
{{- $given := .Values.recommender.config -}}
{{- if not (include "tidewatch.recommender.lacksPrometheus" .) -}}
{{- include "tidewatch.recommender.given" . -}}
{{- else if kindIs "string" $given -}}
{{- $given }}{{ include "tidewatch.recommender.addition" . -}}
{{- else -}}
{{- merge (dict "prometheus" (include "tidewatch.recommender.chartPrometheus" . | fromJson)) $given | toPrettyJson -}}
{{- end -}}
{{- end -}}

{{/* The configuration as the values have it. */}}
{{- define "tidewatch.recommender.given" -}}
{{- with .Values.recommender.config -}}
{{- /* As JSON, since Helm would write large numbers as 1e+06 in YAML. A text is kept with its lines and comments. */ -}}
{{- kindIs "string" . | ternary . (toPrettyJson .) -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* What the rights depend on, as YAML: taken from the configuration, or from recommender.rbac if that is in an existing ConfigMap. */}}
{{- define "tidewatch.recommender.needs" -}}
{{- $rbac := .Values.recommender.rbac -}}
{{- if .Values.recommender.existingConfig -}}
{{- $lease := dict "enabled" $rbac.lease.enabled "name" $rbac.lease.name "namespace" $rbac.lease.namespace -}}
{{- dict "targets" $rbac.targets "names" $rbac.recommendations "configMaps" $rbac.configMaps "nodes" $rbac.nodes "counts" $rbac.counts "autoscalers" $rbac.autoscalers "verticalAutoscalers" $rbac.verticalAutoscalers "sizes" $rbac.clusterSizes "lease" $lease "objects" $rbac.recommendationObjects | toYaml -}}
{{- else -}}
{{- $config := include "tidewatch.recommender.config" . | fromYaml -}}
{{- $targets := list -}}{{- $names := list -}}{{- $configMaps := list -}}{{- $nodes := false -}}{{- $counts := list -}}{{- $sizes := list -}}{{- $autoscalers := list -}}{{- $verticals := list -}}
{{- range $config.recommendations -}}
{{- $name := .name -}}
{{- $each := (.predictive | default dict).forEach -}}
{{- if $each -}}
{{- /* As ForEach.most_memory_shards: 400 targets a ConfigMap, 32 ConfigMaps at least, doubled until all have room. */ -}}
{{- $shards := 32 -}}
{{- range until 16 }}{{ if lt (mul $shards 400) ($each.max | default 10000 | int) }}{{ $shards = mul $shards 2 }}{{ end }}{{ end -}}
{{- range until (int $shards) }}{{ $names = append $names (printf "%s-%d" $name .) }}{{ end -}}
{{- else if .resources -}}
{{- /* As memory_shards: 400 targets a ConfigMap, doubled until all have room. */ -}}
{{- $most := len (.targets | default list) -}}{{- $shards := 1 -}}
{{- if kindIs "map" .resources.forEach -}}
{{- $most = .resources.forEach.max | default 1000 | int -}}
{{- range .resources.forEach.namespaces | default (list "/") }}{{ $autoscalers = append $autoscalers . }}{{ $verticals = append $verticals . }}{{ end -}}
{{- end -}}
{{- range until 16 }}{{ if lt (mul $shards 400) $most }}{{ $shards = mul $shards 2 }}{{ end }}{{ end -}}
{{- range until (int $shards) }}{{ $names = append $names (printf "%s-%d" $name .) }}{{ end -}}
{{- else -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- $scale := has "scale" (.outputs | default list) -}}{{- $resize := has "resize" (.outputs | default list) -}}
{{- range .targets }}{{ $targets = append $targets (merge (dict "scale" $scale "resize" $resize) .) }}{{ end -}}
{{- if or .resources (.proportional | default dict).resources }}{{ range .targets }}{{ $verticals = append $verticals .namespace }}{{ end }}{{ end -}}
{{- $workloads := (.resources | default dict).forEach -}}
{{- if and $resize (kindIs "map" $workloads) -}}
{{- $kind := $workloads.kind | default "Deployment" -}}
{{- range $workloads.namespaces | default (list "") }}{{ $targets = append $targets (dict "apiVersion" "apps/v1" "kind" $kind "namespace" . "resize" true) }}{{ end -}}
{{- end -}}
{{- if and $each $scale -}}
{{- $kind := $each.kind | default "Deployment" -}}
{{- $targets = append $targets (dict "apiVersion" (eq $kind "ReplicationController" | ternary "v1" "apps/v1") "kind" $kind "scale" $scale) -}}
{{- end -}}
{{- $proportional := .proportional | default dict -}}
{{- if or $proportional.linear $proportional.ladder $proportional.interpolated $proportional.configMap $proportional.resources }}{{ $nodes = true }}{{ end -}}
{{- with $proportional.configMap }}{{ $configMaps = append $configMaps (dict "namespace" .namespace "name" .name "create" (not (empty .defaultParams))) }}{{ end -}}
{{- range $kind, $driver := omit ($proportional.drivers | default dict) "query" -}}
{{- $counts = append $counts (dict "kind" $kind "namespace" ($driver.namespace | default "")) -}}
{{- end -}}
{{- range $sections := $proportional.resources }}{{ range $steps := $sections }}{{ range $step := $steps -}}
{{- if hasKey $step "podsAndServicesPerStep" -}}
{{- range list "pods" "services" }}{{ $counts = append $counts (dict "kind" . "namespace" "") }}{{ end -}}
{{- end -}}
{{- end }}{{ end }}{{ end -}}
{{- if .clusterSize -}}
{{- $sizes = append $sizes (include "tidewatch.recommender.sizeNeeds" . | fromYaml) -}}
{{- with include "tidewatch.recommender.priorities" .clusterSize | fromYaml }}{{ $configMaps = append $configMaps . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $election := $config.leaderElection | default dict -}}
{{- $lease := dict "enabled" (dig "enabled" true $election) "name" ($election.name | default "tidewatch-recommender") "namespace" ($election.namespace | default "") -}}
{{- dict "targets" $targets "names" $names "configMaps" $configMaps "nodes" $nodes "counts" $counts "autoscalers" $autoscalers "verticalAutoscalers" $verticals "sizes" $sizes "lease" $lease "objects" ($config.recommendationObjects | default dict) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* The role of the Lease. Its name depends on the Lease alone, so Helm refuses a second release with the same Lease. */}}
{{- define "tidewatch.recommender.leaseRole" -}}
{{ .name }}-leader-election
{{- end -}}

{{/* Fails if the Lease is another release's: the recommender of this one would never lead. */}}
{{- define "tidewatch.recommender.refuseSharing" -}}
{{- $lease := (include "tidewatch.recommender.needs" . | fromYaml).lease -}}
{{- if and $lease.enabled .Values.recommender.rbac.create -}}
{{- $place := $lease.namespace | default .Release.Namespace -}}
{{- with include "tidewatch.otherRelease" (list $ (lookup "rbac.authorization.k8s.io/v1" "Role" $place (include "tidewatch.recommender.leaseRole" $lease))) -}}
{{- $value := empty $.Values.recommender.existingConfig | ternary "leaderElection.name of recommender.config" "recommender.rbac.lease.name, and leaderElection.name of your configuration," -}}
{{- fail (printf "the Lease %s/%s is that of the Helm release %s, so the recommender of this release would never lead: set %s to another name, such as %s, and give its recommendations other names than those of that release" $place $lease.name . $value (include "tidewatch.recommender" $)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The release that has an object, as NAMESPACE/NAME: (context, object). Empty if it is this release's, nobody's, or not there. */}}
{{- define "tidewatch.otherRelease" -}}
{{- $release := (index . 0).Release -}}
{{- $notes := dig "metadata" "annotations" dict (index . 1) | default dict -}}
{{- $owner := printf "%s/%s" (index $notes "meta.helm.sh/release-namespace") (index $notes "meta.helm.sh/release-name") -}}
{{- if and (hasKey $notes "meta.helm.sh/release-name") (ne $owner (printf "%s/%s" $release.Namespace $release.Name)) }}{{ $owner }}{{ end -}}
{{- end -}}

{{/* The rights other than those on the Lease, as a YAML mapping of namespace (`/`: the whole cluster) to the rules of its role. */}}
{{- define "tidewatch.recommender.rights" -}}
{{- $plurals := .Values.recommender.rbac.plurals | default dict -}}
{{- $needs := include "tidewatch.recommender.needs" . | fromYaml -}}
{{- $rights := dict -}}
{{- $update := list "get" "update" -}}{{- $watch := list "list" "watch" -}}
{{- range $needs.targets -}}
{{- $group := contains "/" .apiVersion | ternary (splitList "/" .apiVersion | first) "" -}}
{{- $plural := index $plurals .kind | default (include "tidewatch.plural" .kind) -}}
{{- /* Targets that series name (forEach) are in all namespaces. */ -}}
{{- $namespace := .namespace | default "/" -}}
{{- template "tidewatch.addRight" (list $rights $namespace "" "events" (list "create") "") -}}
{{- template "tidewatch.addRight" (list $rights $namespace "autoscaling" "horizontalpodautoscalers" $watch "") -}}
{{- template "tidewatch.addRight" (list $rights $namespace $group $plural (list "get") .name) -}}
{{- if .scale -}}
{{- template "tidewatch.addRight" (list $rights $namespace $group (printf "%s/scale" $plural) $update .name) -}}
{{- template "tidewatch.addRight" (list $rights $namespace "keda.sh" "scaledobjects" $watch "") -}}
{{- end -}}
{{- if .resize -}}
{{- template "tidewatch.addRight" (list $rights $namespace $group $plural (list "update") .name) -}}
{{- range list "pods" "limitranges" "resourcequotas" }}{{ template "tidewatch.addRight" (list $rights $namespace "" . (list "list") "") }}{{ end -}}
{{- template "tidewatch.addRight" (list $rights $namespace "" "pods/resize" $update "") -}}
{{- template "tidewatch.addRight" (list $rights $namespace "apps" "replicasets" (list "list") "") -}}
{{- template "tidewatch.addRight" (list $rights $namespace "autoscaling.k8s.io" "verticalpodautoscalers" $watch "") -}}
{{- end -}}
{{- end -}}
{{- range $needs.autoscalers -}}
{{- template "tidewatch.addRight" (list $rights . "autoscaling" "horizontalpodautoscalers" $watch "") -}}
{{- end -}}
{{- range $needs.verticalAutoscalers -}}
{{- template "tidewatch.addRight" (list $rights . "autoscaling.k8s.io" "verticalpodautoscalers" $watch "") -}}
{{- end -}}
{{- range $needs.configMaps -}}
{{- template "tidewatch.addRight" (list $rights .namespace "" "configmaps" (list "get") .name) -}}
{{- if .create }}{{ template "tidewatch.addRight" (list $rights .namespace "" "configmaps" (list "create") "") }}{{ end -}}
{{- end -}}
{{- $place := $needs.lease.namespace | default .Release.Namespace -}}
{{- range $needs.names -}}
{{- template "tidewatch.addRight" (list $rights $place "" "configmaps" (list "create") "") -}}
{{- template "tidewatch.addRight" (list $rights $place "" "configmaps" $update (printf "tidewatch-recommender-%s" .)) -}}
{{- end -}}
{{- if $needs.nodes }}{{ template "tidewatch.addRight" (list $rights "/" "" "nodes" $watch "") }}{{ end -}}
{{- template "tidewatch.addSizeRights" (list $rights $needs.sizes $place) -}}
{{- $everywhere := list -}}
{{- range $needs.counts }}{{ if not .namespace }}{{ $everywhere = append $everywhere .kind }}{{ end }}{{ end -}}
{{- range $needs.counts -}}
{{- if or (not .namespace) (not (has .kind $everywhere)) -}}
{{- $isEndpoints := eq .kind "endpoints" -}}
{{- template "tidewatch.addRight" (list $rights (.namespace | default "/") ($isEndpoints | ternary "discovery.k8s.io" "") ($isEndpoints | ternary "endpointslices" .kind) $watch "") -}}
{{- end -}}
{{- end -}}
{{- template "tidewatch.addObjectRights" (list $rights $needs.objects $place $plurals) -}}
{{- $roles := dict -}}
{{- range $key := keys $rights | sortAlpha -}}
{{- $right := index $rights $key -}}
{{- $rule := $right.rule -}}
{{- if not $right.all }}{{ $rule = merge (dict "resourceNames" ($right.names | uniq | sortAlpha)) $rule }}{{ end -}}
{{- $_ := set $roles $right.namespace (append (index $roles $right.namespace | default list) $rule) -}}
{{- end -}}
{{- $roles | toYaml -}}
{{- end -}}

{{/* Adds the rights for objects of the kind Recommendation: (mapping, recommendationObjects of the file, namespace of the memories, plurals). */}}
{{- define "tidewatch.addObjectRights" -}}
{{- $rights := index . 0 -}}{{- $objects := index . 1 -}}{{- $place := index . 2 -}}{{- $plurals := index . 3 -}}
{{- if $objects.enabled -}}
{{- $update := list "get" "update" -}}{{- $watch := list "list" "watch" -}}
{{- template "tidewatch.addRight" (list $rights "/" "tidewatch.io" "recommendations" $watch "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "tidewatch.io" "recommendations/status" (list "patch") "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "" "nodes" $watch "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "autoscaling" "horizontalpodautoscalers" $watch "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "autoscaling.k8s.io" "verticalpodautoscalers" $watch "") -}}
{{- if has "scale" ($objects.outputs | default list) }}{{ template "tidewatch.addRight" (list $rights "/" "keda.sh" "scaledobjects" $watch "") }}{{ end -}}
{{- template "tidewatch.addRight" (list $rights "/" "" "events" (list "create") "") -}}
{{- $kinds := list (dict "apiVersion" "apps/v1" "kind" "Deployment") (dict "apiVersion" "apps/v1" "kind" "StatefulSet") -}}
{{- range hasKey $objects "targetKinds" | ternary $objects.targetKinds $kinds -}}
{{- $group := contains "/" .apiVersion | ternary (splitList "/" .apiVersion | first) "" -}}
{{- $plural := index $plurals .kind | default (include "tidewatch.plural" .kind) -}}
{{- template "tidewatch.addRight" (list $rights "/" $group $plural (list "get") "") -}}
{{- if has "scale" ($objects.outputs | default list) }}{{ template "tidewatch.addRight" (list $rights "/" $group (printf "%s/scale" $plural) $update "") }}{{ end -}}
{{- end -}}
{{- template "tidewatch.addRight" (list $rights $place "" "configmaps" (list "create") "") -}}
{{- range until 32 -}}
{{- template "tidewatch.addRight" (list $rights $place "" "configmaps" $update (printf "tidewatch-recommender-objects.tidewatch.io-%d" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Adds a right to a mapping: (mapping, namespace, API group, resource, verbs, name of the object or empty for all). */}}
{{- define "tidewatch.addRight" -}}
{{- $rights := index . 0 -}}{{- $namespace := index . 1 -}}{{- $group := index . 2 -}}{{- $resource := index . 3 -}}{{- $verbs := index . 4 -}}{{- $name := index . 5 -}}
{{- $key := list $namespace $group $resource (join "," $verbs) | join " " -}}
{{- $rule := dict "apiGroups" (list $group) "resources" (list $resource) "verbs" $verbs -}}
{{- $right := index $rights $key | default (dict "namespace" $namespace "rule" $rule "names" list "all" false) -}}
{{- if $name }}{{ $_ := set $right "names" (append $right.names $name) }}{{ else }}{{ $_ := set $right "all" true }}{{ end -}}
{{- $_ := set $rights $key $right -}}
{{- end -}}

{{/* The plural of a kind, as Kubernetes guesses it where discovery is not at hand. */}}
{{- define "tidewatch.plural" -}}
{{- $name := lower . -}}
{{- if hasSuffix "s" $name -}}
{{ $name }}es
{{- else if hasSuffix "y" $name -}}
{{ trimSuffix "y" $name }}ies
{{- else -}}
{{ $name }}s
{{- end -}}
{{- end -}}
