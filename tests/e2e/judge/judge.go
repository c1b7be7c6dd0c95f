package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// question is a cluster and a pod that has no node yet. The default namespace exists without being listed.
type question struct {
	Nodes          []*v1.Node                  `json:"nodes"`
	Pods           []*v1.Pod                   `json:"pods"`
	Pod            *v1.Pod                     `json:"pod"`
	Namespaces     []*v1.Namespace             `json:"namespaces"`
	Claims         []*v1.PersistentVolumeClaim `json:"claims"`
	Volumes        []*v1.PersistentVolume      `json:"volumes"`
	StorageClasses []*storagev1.StorageClass   `json:"storageClasses"`
	CSINodes       []*storagev1.CSINode        `json:"csiNodes"`
}

// verdict says why a node cannot take the pod; without a plugin, it can.
type verdict struct {
	Plugin       string   `json:"plugin,omitempty"`
	Reasons      []string `json:"reasons,omitempty"`
	Unresolvable bool     `json:"unresolvable,omitempty"`
}

type answer struct {
	// Refused is set where no node is asked, such as for a claim that is missing.
	Refused *verdict           `json:"refused,omitempty"`
	Nodes   map[string]verdict `json:"nodes"`
	// Message is what the event FailedScheduling says; empty where a node can take the pod.
	Message string `json:"message,omitempty"`
}

func init() { metrics.Register() }

func judge(ctx context.Context, asked question) (*answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	snapshot := cache.NewSnapshot(asked.Pods, asked.Nodes)
	profile, err := newFramework(ctx, asked, snapshot)
	if err != nil {
		return nil, err
	}
	defer profile.Close()
	return ask(ctx, profile, snapshot, asked.Pod)
}

func ask(ctx context.Context, profile framework.Framework, snapshot *cache.Snapshot, pod *v1.Pod) (*answer, error) {
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	found := &answer{Nodes: map[string]verdict{}}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	chosen, status, choosers := profile.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		refused := verdictOf(status)
		found.Refused = &refused
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		found.Message = fitError(pod, len(infos), diagnosis)
		return found, nil
	}
	fits := false
	for _, info := range infos {
		name := info.Node().Name
		if !chosen.AllNodes() && !chosen.NodeNames.Has(name) {
			// As schedule_one.go: nodes that a plugin's PreFilter has not chosen are not filtered.
			reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(choosers))
			status := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
			diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
			found.Nodes[name] = verdict{Plugin: "PreFilter", Reasons: status.Reasons(), Unresolvable: true}
			continue
		}
		status := profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		if status.IsSuccess() {
			fits = true
			found.Nodes[name] = verdict{}
			continue
		}
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		diagnosis.NodeToStatus.Set(name, status)
		found.Nodes[name] = verdictOf(status)
	}
	if !fits {
		found.Message = fitError(pod, len(infos), diagnosis)
	}
	return found, nil
}

func verdictOf(status *fwk.Status) verdict {
	return verdict{status.Plugin(), status.Reasons(), status.Code() == fwk.UnschedulableAndUnresolvable}
}

func fitError(pod *v1.Pod, nodes int, diagnosis framework.Diagnosis) string {
	return (&framework.FitError{Pod: pod, NumAllNodes: nodes, Diagnosis: diagnosis}).Error()
}

func newFramework(ctx context.Context, asked question, snapshot *cache.Snapshot) (framework.Framework, error) {
	client := fake.NewClientset(asked.objects()...)
	factory := informers.NewSharedInformerFactory(client, 0)
	logger := klog.FromContext(ctx)
	claims := assumecache.NewAssumeCache(logger, factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client})
	if err != nil {
		return nil, err
	}
	profile, err := defaultProfile()
	if err != nil {
		return nil, err
	}
	made, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithEventRecorder(events.NewFakeRecorder(0)),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithPodNominator(noNominations{}),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, factory)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
	)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return made, nil
}

func defaultProfile() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	return &defaults.Profiles[0], nil
}

func (asked question) objects() []runtime.Object {
	objects := []runtime.Object{}
	for _, each := range asked.Namespaces {
		objects = append(objects, each)
	}
	for _, each := range asked.Claims {
		objects = append(objects, each)
	}
	for _, each := range asked.Volumes {
		objects = append(objects, each)
	}
	for _, each := range asked.StorageClasses {
		objects = append(objects, each)
	}
	for _, each := range asked.CSINodes {
		objects = append(objects, each)
	}
	for _, each := range asked.Nodes {
		objects = append(objects, each)
	}
	return objects
}

// noNominations says that no pod has been promised a node.
type noNominations struct{ fwk.PodNominator }

func (noNominations) NominatedPodsForNode(string) []fwk.PodInfo { return nil }
