//go:build kube

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A kubelet runs one pod that the API server has, as a kubelet does but for what containers and cgroups are: each container is a
// process with the arguments and the environment of its spec, in which the mounted places are the folders of the pod's volumes.
type kubelet struct {
	t          *testing.T
	path       string           // of the pod at the API server
	images     map[string]image // by their references: nothing is pulled
	volumes    string           // has a folder for each volume, in memory
	logs       string           // has a file for each container
	nursery    *process.Nursery
	containers map[string]*container
	told       string        // the status as the API server has it
	kills      chan string   // the names of containers to kill
	gone       chan struct{} // closed when the pod is
}

// An image is a program and the environment that it comes with.
type image struct {
	program     string
	environment []string
}

// A container is the process that runs for it now, or ran last.
type container struct {
	image    string
	process  *process.Process
	begun    time.Time
	ready    bool
	restarts int
	last     map[string]any // how the one before it has ended; nil if there was none
}

// A pod is what a kubelet needs to know of one.
type pod struct {
	Metadata struct {
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		InitContainers []containerSpec `json:"initContainers"`
		Containers     []containerSpec `json:"containers"`
		Grace          int             `json:"terminationGracePeriodSeconds"`
		Volumes        []struct {
			Name     string    `json:"name"`
			EmptyDir *struct{} `json:"emptyDir"`
		} `json:"volumes"`
	} `json:"spec"`
}

type containerSpec struct {
	Name          string                         `json:"name"`
	Image         string                         `json:"image"`
	RestartPolicy string                         `json:"restartPolicy"`
	Args          []string                       `json:"args"`
	Env           []struct{ Name, Value string } `json:"env"`
	VolumeMounts  []struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
	} `json:"volumeMounts"`
	Ports []struct {
		Name          string `json:"name"`
		ContainerPort int    `json:"containerPort"`
	} `json:"ports"`
	StartupProbe *struct {
		HTTPGet struct {
			Path string `json:"path"`
			Port string `json:"port"`
		} `json:"httpGet"`
	} `json:"startupProbe"`
}

// startKubelet runs a pod until it is deleted, or else until the test ends.
func startKubelet(t *testing.T, path string, images map[string]image) *kubelet {
	t.Helper()
	volumes, err := os.MkdirTemp("/dev/shm", "pod")
	must(t, err)
	k := &kubelet{
		t: t, path: path, images: images, volumes: volumes, logs: t.TempDir(), nursery: process.NewNursery(),
		containers: map[string]*container{}, kills: make(chan string), gone: make(chan struct{}),
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		stop()
		<-k.gone
		k.close()
	})
	go k.run(ctx)
	return k
}

func (k *kubelet) close() {
	for name, c := range k.containers {
		c.process.Kill()
		if k.t.Failed() {
			k.t.Logf("container %s:\n%s", name, k.log(name))
		}
	}
	k.nursery.Close()
	os.RemoveAll(k.volumes)
}

// run compares what there is with what there should be, again and again.
func (k *kubelet) run(ctx context.Context) {
	defer close(k.gone)
	for {
		deleted, err := k.sync(ctx)
		if deleted || ctx.Err() != nil {
			return
		}
		if err != nil {
			k.t.Errorf("kubelet: %v", err)
			return
		}
		select {
		case name := <-k.kills:
			k.containers[name].process.Kill()
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// kill ends a container as the kernel does that is out of memory.
func (k *kubelet) kill(name string) {
	select {
	case k.kills <- name:
	case <-k.gone:
	}
}

func (k *kubelet) sync(ctx context.Context) (deleted bool, err error) {
	p := &pod{}
	if err := cluster.Do(ctx, http.MethodGet, k.path, nil, p); err != nil {
		return false, err
	}
	if p.Metadata.DeletionTimestamp != "" {
		k.terminate(p)
		return true, cluster.Do(ctx, http.MethodDelete, k.path, map[string]any{"gracePeriodSeconds": 0}, nil)
	}
	for _, volume := range p.Spec.Volumes {
		if volume.EmptyDir == nil {
			return false, fmt.Errorf("volume %s is no emptyDir", volume.Name)
		}
		if err := os.MkdirAll(filepath.Join(k.volumes, volume.Name), 0o777); err != nil {
			return false, err
		}
	}
	return false, errors.Join(k.tend(ctx, p), k.report(ctx, p))
}

// tend has those run that should. The others follow when an init container has succeeded, or serves if it goes on for as long as the pod.
func (k *kubelet) tend(ctx context.Context, p *pod) error {
	for _, spec := range p.Spec.InitContainers {
		lasting := spec.RestartPolicy == "Always"
		if err := k.tendOne(ctx, spec, lasting, p.Spec.Grace); err != nil {
			return err
		}
		c := k.containers[spec.Name]
		if succeeded := !c.process.Running() && c.process.State().Success(); lasting && !c.ready || !lasting && !succeeded {
			return nil
		}
	}
	for _, spec := range p.Spec.Containers {
		if err := k.tendOne(ctx, spec, true, p.Spec.Grace); err != nil {
			return err
		}
	}
	return nil
}

// tendOne starts a container, or starts it anew if it has ended and should not have, or if its image is another one now.
func (k *kubelet) tendOne(ctx context.Context, spec containerSpec, lasting bool, grace int) error {
	c := k.containers[spec.Name]
	switch {
	case c == nil:
		return k.start(spec, &container{})
	case !lasting && !c.process.Running():
		return nil
	case c.process.Running() && c.image == spec.Image:
		k.probe(ctx, spec, c)
		return nil
	}
	end(c, grace)
	return k.start(spec, &container{restarts: c.restarts + 1, last: terminated(c)})
}

// end stops a container: with SIGTERM, and with SIGKILL when the grace is over.
func end(c *container, grace int) {
	c.process.Send(syscall.SIGTERM)
	select {
	case <-c.process.Exited():
	case <-time.After(time.Duration(grace) * time.Second):
		c.process.Kill()
	}
}

// terminate stops the pod: first its containers, all at the same time, and then the sidecars, the last one first.
func (k *kubelet) terminate(p *pod) {
	for _, spec := range p.Spec.Containers {
		k.containers[spec.Name].process.Send(syscall.SIGTERM)
	}
	for _, spec := range p.Spec.Containers {
		end(k.containers[spec.Name], p.Spec.Grace)
	}
	for i := len(p.Spec.InitContainers) - 1; i >= 0; i-- {
		end(k.containers[p.Spec.InitContainers[i].Name], p.Spec.Grace)
	}
}

func (k *kubelet) start(spec containerSpec, c *container) error {
	log, err := os.OpenFile(filepath.Join(k.logs, spec.Name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	command, err := k.command(context.Background(), spec, spec.Args)
	if err != nil {
		return errors.Join(err, log.Close())
	}
	command.Stdout, command.Stderr = log, log
	c.image, c.begun = spec.Image, time.Now()
	c.process, err = k.nursery.Start(command, log)
	k.containers[spec.Name] = c
	return err
}

// probe runs the startup probe of a container until it succeeds. One without serves as soon as it runs.
func (k *kubelet) probe(ctx context.Context, spec containerSpec, c *container) {
	if c.ready || spec.StartupProbe == nil {
		c.ready = true
		return
	}
	if c.ready = answers(ctx, spec); c.ready {
		k.t.Logf("%s serves %v after its start", spec.Name, time.Since(c.begun).Round(time.Millisecond))
	}
}

// answers says whether a container's startup probe succeeds. Pods here have the addresses of this machine.
func answers(ctx context.Context, spec containerSpec) bool {
	asked := spec.StartupProbe.HTTPGet
	for _, port := range spec.Ports {
		if port.Name != asked.Port {
			continue
		}
		url := fmt.Sprintf("http://127.0.0.1:%d%s", port.ContainerPort, asked.Path)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false
		}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	return false
}

// command runs the program of a container's image beside its volumes.
func (k *kubelet) command(ctx context.Context, spec containerSpec, arguments []string) (*exec.Cmd, error) {
	has, there := k.images[spec.Image]
	if !there {
		return nil, fmt.Errorf("there is no image %s", spec.Image)
	}
	var places []string
	for _, mount := range spec.VolumeMounts {
		places = append(places, mount.MountPath+"/", filepath.Join(k.volumes, mount.Name)+"/")
	}
	seen := strings.NewReplacer(places...)
	command := exec.CommandContext(ctx, has.program)
	for _, argument := range arguments {
		command.Args = append(command.Args, seen.Replace(argument))
	}
	command.Env = []string{} // nothing of this process's own
	for _, variable := range has.environment {
		command.Env = append(command.Env, seen.Replace(variable))
	}
	for _, variable := range spec.Env {
		command.Env = append(command.Env, variable.Name+"="+seen.Replace(variable.Value))
	}
	return command, nil
}

// log is what a container has written so far.
func (k *kubelet) log(name string) string {
	text, _ := os.ReadFile(filepath.Join(k.logs, name)) // there is none before it has started
	return string(text)
}

// report writes the pod's status if it is another one now.
func (k *kubelet) report(ctx context.Context, p *pod) error {
	status := map[string]any{"phase": "Pending"}
	init, _ := k.statuses(p.Spec.InitContainers)
	ordinary, all := k.statuses(p.Spec.Containers)
	if all {
		status["phase"] = "Running"
	}
	status["initContainerStatuses"], status["containerStatuses"] = init, ordinary
	encoded, err := json.Marshal(status)
	if err != nil || string(encoded) == k.told {
		return err
	}
	k.told = string(encoded)
	return cluster.Do(ctx, http.MethodPatch, k.path+"/status", map[string]any{"status": status}, nil)
}

// statuses is that of each container that has been started, and whether all have.
func (k *kubelet) statuses(specs []containerSpec) (statuses []any, all bool) {
	for _, spec := range specs {
		c := k.containers[spec.Name]
		if c == nil {
			return statuses, false
		}
		status := map[string]any{
			"name": spec.Name, "image": c.image, "imageID": c.image, "ready": c.ready, "started": c.ready, "restartCount": c.restarts,
			"state": map[string]any{"running": map[string]any{"startedAt": stamp(c.begun)}},
		}
		if !c.process.Running() {
			status["state"] = terminated(c)
		}
		if c.last != nil {
			status["lastState"] = c.last
		}
		statuses = append(statuses, status)
	}
	return statuses, true
}

// terminated is the state of a container that has ended.
func terminated(c *container) map[string]any {
	code, reason := c.process.State().ExitCode(), "Completed"
	if how, told := c.process.State().Sys().(syscall.WaitStatus); told && how.Signaled() {
		code = 128 + int(how.Signal())
	}
	if code != 0 {
		reason = "Error"
	}
	return map[string]any{"terminated": map[string]any{"exitCode": code, "reason": reason, "startedAt": stamp(c.begun)}}
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
