// Fit answers, for one pod and one cluster per line of JSON, which nodes kube-scheduler's own
// filters admit: the other side of the differential test of Posse's engine.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// In the order of kube-scheduler's default profile.
var filters = []string{
	names.NodeUnschedulable,
	names.NodeName,
	names.TaintToleration,
	names.NodeAffinity,
	names.NodePorts,
	names.NodeResourcesFit,
	names.PodTopologySpread,
	names.InterPodAffinity,
}

type question struct {
	Namespaces []*v1.Namespace `json:"namespaces"`
	Nodes      []*v1.Node      `json:"nodes"`
	Pods       []*v1.Pod       `json:"pods"`
	Pod        *v1.Pod         `json:"pod"`
}

type answer struct {
	Nodes []string          `json:"nodes"`
	Why   map[string]string `json:"why"`
	Error string            `json:"error,omitempty"`
}

func main() {
	klog.LogToStderr(true)
	metrics.Register()
	lines := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := out.Encode(respond(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}

func respond(line []byte) answer {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	found, err := admitting(ctx, asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return found
}

func admitting(ctx context.Context, asked question) (answer, error) {
	snapshot := cache.NewSnapshot(asked.Pods, asked.Nodes)
	scheduler, err := filtering(ctx, asked, snapshot)
	if err != nil {
		return answer{}, err
	}
	found := answer{Nodes: []string{}, Why: map[string]string{}}
	state := framework.NewCycleState()
	possible, status, _ := scheduler.RunPreFilterPlugins(ctx, state, asked.Pod)
	if status.Code() == fwk.Error {
		return answer{}, status.AsError()
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		return answer{}, err
	}
	for _, info := range infos {
		name := info.Node().Name
		if !status.IsSuccess() {
			found.Why[name] = status.Message()
			continue
		}
		if !possible.AllNodes() && !possible.NodeNames.Has(name) {
			found.Why[name] = "not among the nodes that the pod names"
			continue
		}
		if verdict := scheduler.RunFilterPlugins(ctx, state, asked.Pod, info); !verdict.IsSuccess() {
			found.Why[name] = verdict.Plugin() + ": " + verdict.Message()
			continue
		}
		found.Nodes = append(found.Nodes, name)
	}
	sort.Strings(found.Nodes)
	return found, nil
}

func filtering(ctx context.Context, asked question, snapshot *cache.Snapshot) (framework.Framework, error) {
	factory := informers.NewSharedInformerFactory(nil, 0)
	for _, namespace := range asked.Namespaces {
		if err := factory.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace); err != nil {
			return nil, err
		}
	}
	var chosen config.PluginSet
	for _, name := range filters {
		chosen.Enabled = append(chosen.Enabled, config.Plugin{Name: name})
	}
	before := config.PluginSet{}
	for _, name := range filters {
		switch name {
		case names.NodeUnschedulable, names.NodeName, names.TaintToleration:
		default:
			before.Enabled = append(before.Enabled, config.Plugin{Name: name})
		}
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &config.KubeSchedulerProfile{
		SchedulerName: "fit",
		PluginConfig:  defaults.Profiles[0].PluginConfig,
		Plugins: &config.Plugins{
			QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: names.PrioritySort}}},
			Bind:      config.PluginSet{Enabled: []config.Plugin{{Name: names.DefaultBinder}}},
			PreFilter: before,
			Filter:    chosen,
		},
	}
	return runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		runtime.WithSnapshotSharedLister(snapshot),
		runtime.WithInformerFactory(factory),
	)
}
