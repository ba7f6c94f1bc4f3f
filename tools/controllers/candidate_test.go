//go:build kube

package controllers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/sidekeeper/sidekeeper/clients/go/k8s"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// The kinds of elections.
const (
	ours   = "sidekeeper"
	theirs = "lease"
)

// candidacyVariable holds what a candidate's process is told.
const candidacyVariable = "TEST_CANDIDACY"

// betweenWrites is how long a leader waits after a write.
const betweenWrites = 20 * time.Millisecond

// A candidacy is what a candidate is told.
type candidacy struct{ Kind, Name, Election, KubeConfig, Address string }

// stand is a candidate's process: an elector of client-go with one lock or the other, which ends the process when it stops leading, as those of
// Kubernetes itself do. Each line that it reads cuts its election off for so long, and nothing else.
func stand(settings string) int {
	c := candidacy{}
	if err := json.Unmarshal([]byte(settings), &c); err != nil {
		panic(err)
	}
	cut := &link{}
	go cut.obey()
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeConfig)
	if err != nil {
		panic(err)
	}
	config.QPS = -1 // as fast as it can
	ctx := context.Background()
	lock, writing := c.lease(config, cut), config
	if c.Kind == ours {
		lock, writing, ctx = c.election(config, cut)
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		// As long as a lease of the sidecar, and in the proportions of client-go's own 15, 10 and 2 seconds.
		Lock: lock, LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 800 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { c.write(ctx, kubernetes.NewForConfigOrDie(writing)) },
			OnStoppedLeading: func() { os.Exit(1) },
		},
	})
	return 1
}

func (c candidacy) lease(config *rest.Config, cut *link) resourcelock.Interface {
	electing := rest.CopyConfig(config)
	electing.Dial = cut.dial
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: c.Election},
		Client:     kubernetes.NewForConfigOrDie(electing).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Name},
	}
}

func (c candidacy) election(config *rest.Config, cut *link) (resourcelock.Interface, *rest.Config, context.Context) {
	client, err := sidekeeper.Dial(c.Address, sidekeeper.WithDialer(cut.dial))
	if err != nil {
		panic(err)
	}
	gate := &k8s.Gate{}
	lock := k8s.NewLock(client, c.Election, k8s.Options{Candidate: c.Name, Gate: gate})
	ctx, _ := lock.Context(context.Background()) //nolint:govet // until the process ends
	return lock, gate.Guard(config), ctx
}

// write writes who leads, again and again, as long as it may.
func (c candidacy) write(ctx context.Context, client *kubernetes.Clientset) {
	tag := fmt.Sprintf("%s/%d", c.Name, os.Getpid())
	fmt.Fprintln(os.Stdout, tag)
	objects := client.CoreV1().ConfigMaps("default")
	for number := 0; ctx.Err() == nil; number++ {
		patch := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"writer":%q,"number":"%d"}}`,
			c.Election, tag, number)
		_, _ = objects.Patch(ctx, c.Election, types.ApplyPatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: "test", Force: new(true)}) // what fails is tried again
		select {
		case <-time.After(betweenWrites):
		case <-ctx.Done():
		}
	}
}

// A link is what an election hangs on. While it is cut, nothing passes in either direction, and no connection ends.
type link struct {
	mu   sync.Mutex
	open chan struct{} // closed when it is whole again; nil, it is whole
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.pass()
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &linked{connection, l}, err
}

func (l *link) pass() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	if open != nil {
		<-open
	}
}

// obey cuts the link as long as each line of the input says.
func (l *link) obey() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		duration, err := time.ParseDuration(lines.Text())
		if err != nil {
			panic(err)
		}
		open := make(chan struct{})
		l.mu.Lock()
		l.open = open
		l.mu.Unlock()
		<-time.After(duration)
		l.mu.Lock()
		l.open = nil
		l.mu.Unlock()
		close(open)
	}
}

type linked struct {
	net.Conn
	link *link
}

func (l *linked) Read(data []byte) (int, error) {
	count, err := l.Conn.Read(data)
	l.link.pass()
	return count, err
}

func (l *linked) Write(data []byte) (int, error) {
	l.link.pass()
	return l.Conn.Write(data)
}
