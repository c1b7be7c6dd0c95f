{{/* What cluster size recommendations may do. `recommender/kinds/cluster_size/kind.py` states the same rights; a test compares the two. */}}

{{/* What the rights of one recommendation depend on, as YAML in the form of an item of recommender.rbac.clusterSizes. */}}
{{- define "tidewatch.recommender.sizeNeeds" -}}
{{- $groups := .clusterSize.nodeGroups -}}
{{- $needs := dict "scale" (has "scale" (.outputs | default list)) -}}
{{- if kindIs "map" $groups -}}
{{- if hasKey $groups "clusterAPI" }}{{ $_ := set $needs "clusterAPI" ($groups.clusterAPI | default dict) }}{{ end -}}
{{- with $groups.externalGRPC }}{{ $_ := set $needs "provider" true }}{{ if .deleteNodes }}{{ $_ := set $needs "deleteNodes" true }}{{ end }}{{ end -}}
{{- with $groups.plugin -}}
{{- if .writes }}{{ $_ := set $needs "provider" true }}{{ if .deleteNodes }}{{ $_ := set $needs "deleteNodes" true }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with .clusterSize.autoscalerNamespaces }}{{ $_ := set $needs "autoscalerNamespaces" . }}{{ end -}}
{{- if .clusterSize.forecasts }}{{ $_ := set $needs "forecasts" true }}{{ end -}}
{{- with .capacityBuffer }}{{ $_ := set $needs "capacityBuffer" . }}{{ end -}}
{{- $needs | toYaml -}}
{{- end -}}

{{/* The ConfigMap with the priorities of node groups, as YAML; nothing if they do not come from one. */}}
{{- define "tidewatch.recommender.priorities" -}}
{{- $expanders := kindIs "slice" .expander | ternary .expander (list .expander) -}}
{{- $priorities := .priorities | default dict -}}
{{- if and (has "priority" $expanders) (or (not $priorities) (hasKey $priorities "configMap")) -}}
{{- $given := $priorities.configMap | default dict -}}
{{- dict "namespace" ($given.namespace | default "kube-system") "name" ($given.name | default "cluster-autoscaler-priority-expander") "create" false | toYaml -}}
{{- end -}}
{{- end -}}

{{/* Adds the rights of cluster size recommendations to a mapping: (mapping, list of their needs, our own namespace). */}}
{{- define "tidewatch.addSizeRights" -}}
{{- $rights := index . 0 -}}{{- $own := index . 2 -}}
{{- $update := list "get" "update" -}}{{- $watch := list "list" "watch" -}}
{{- $watched := dict
  "" (list "nodes" "pods" "namespaces" "persistentvolumeclaims" "persistentvolumes" "replicationcontrollers")
  "apps" (list "deployments" "statefulsets" "replicasets" "daemonsets")
  "batch" (list "jobs")
  "policy" (list "poddisruptionbudgets")
  "storage.k8s.io" (list "storageclasses" "csinodes")
  "scheduling.k8s.io" (list "priorityclasses")
-}}
{{- $scalable := list "machinedeployments" "machinesets" "machinepools" -}}
{{- range $needs := index . 1 -}}
{{- template "tidewatch.addRight" (list $rights "/" "" "events" (list "create") "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "autoscaling.x-k8s.io" "capacitybuffers" (list "list") "") -}}
{{- if $needs.scale -}}
{{- template "tidewatch.addRight" (list $rights "/" "autoscaling.x-k8s.io" "provisioningrequests" (list "list") "") -}}
{{- end -}}
{{- range $group, $resources := $watched -}}
{{- range $resources }}{{ template "tidewatch.addRight" (list $rights "/" $group . $watch "") }}{{ end -}}
{{- end -}}
{{- if $needs.forecasts -}}
{{- template "tidewatch.addRight" (list $rights "/" "" "resourcequotas" $watch "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "autoscaling" "horizontalpodautoscalers" $watch "") -}}
{{- end -}}
{{- if or $needs.provider (hasKey $needs "clusterAPI") -}}
{{- template "tidewatch.addRight" (list $rights "kube-system" "" "configmaps" $watch "cluster-autoscaler-status") -}}
{{- range concat (list "kube-system" $own) ($needs.autoscalerNamespaces | default list) | uniq -}}
{{- template "tidewatch.addRight" (list $rights . "coordination.k8s.io" "leases" $watch "cluster-autoscaler") -}}
{{- end -}}
{{- end -}}
{{- if and $needs.scale $needs.deleteNodes -}}
{{- template "tidewatch.addRight" (list $rights "/" "" "nodes" $update "") -}}
{{- template "tidewatch.addRight" (list $rights "/" "" "pods/eviction" (list "create") "") -}}
{{- end -}}
{{- if hasKey $needs "clusterAPI" -}}
{{- $group := "cluster.x-k8s.io" -}}
{{- range $place := $needs.clusterAPI.namespaces | default (list $needs.clusterAPI.namespace) -}}
{{- /* Each provider of Cluster API has kinds of its own, and their sizes are read to know the nodes of an empty group. */ -}}
{{- template "tidewatch.addRight" (list $rights $place "infrastructure.cluster.x-k8s.io" "*" $watch "") -}}
{{- range concat $scalable (list "machines" "clusters") }}{{ template "tidewatch.addRight" (list $rights $place $group . $watch "") }}{{ end -}}
{{- if $needs.scale -}}
{{- range append $scalable "clusters" }}{{ template "tidewatch.addRight" (list $rights $place $group . (list "get") "") }}{{ end -}}
{{- range $scalable }}{{ template "tidewatch.addRight" (list $rights $place $group (printf "%s/scale" .) $update "") }}{{ end -}}
{{- /* A written `false` keeps the right: marks from before may have to be taken off. */ -}}
{{- if kindIs "bool" $needs.clusterAPI.markMachines }}{{ template "tidewatch.addRight" (list $rights $place $group "machines" $update "") }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $needs.capacityBuffer -}}
{{- template "tidewatch.addRight" (list $rights .namespace "autoscaling.x-k8s.io" "capacitybuffers" $watch .name) -}}
{{- template "tidewatch.addRight" (list $rights .namespace "autoscaling.x-k8s.io" "capacitybuffers" $update .name) -}}
{{- template "tidewatch.addRight" (list $rights .namespace "" "podtemplates" $watch "") -}}
{{- end -}}
{{- end -}}
{{- end -}}
