package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// A stage is ZooKeeper servers, and the means to start sidecars in front of them.
type stage struct {
	settings  settings
	ensemble  *ensemble.Ensemble
	directory string
	counter   int
}

// build starts servers. The caller must close the stage.
func build(ctx context.Context, settings settings, size int) (*stage, error) {
	directory, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	servers, err := ensemble.Start(ctx, ensemble.Options{
		Servers:              size,
		MaxClientConnections: -1,
		DirectPeers:          true, // or the callers' process would pay for what servers say to each other
		Config:               []string{"forceSync=yes", "preAllocSize=65536"},
		JVM:                  []string{"-Xmx512m", "-XX:TieredStopAtLevel=4"},
	})
	if err != nil {
		os.RemoveAll(directory)
		return nil, err
	}
	s := &stage{settings: settings, ensemble: servers, directory: directory}
	if err := s.warmUp(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) close() {
	s.ensemble.Close()
	os.RemoveAll(s.directory)
}

// addresses are the servers themselves.
func (s *stage) addresses() []string {
	var addresses []string
	for _, server := range s.ensemble.Servers() {
		addresses = append(addresses, server.RealAddress())
	}
	return addresses
}

// startSidecar starts one in front of these addresses. The caller must stop it.
func (s *stage) startSidecar(ctx context.Context, addresses []string, flags ...string) (*sidecar, error) {
	return s.startProgram(ctx, s.settings.sidecar, addresses, flags...)
}

func (s *stage) startProgram(ctx context.Context, program string, addresses []string, flags ...string) (*sidecar, error) {
	s.counter++
	directory := filepath.Join(s.directory, strconv.Itoa(s.counter))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return nil, err
	}
	return startSidecar(ctx, program, directory, append([]string{
		"--zookeeper", strings.Join(addresses, ","),
		"--max-leases", "5000",
	}, append(flags, strings.Fields(s.settings.extra)...)...))
}

// startField starts a sidecar and servers of etcd's, as many as there are of ZooKeeper's. The caller must stop them.
func (s *stage) startField(ctx context.Context) (field, error) {
	f := field{addresses: s.addresses()}
	for _, server := range s.ensemble.Servers() {
		f.servers = append(f.servers, server.ProcessID())
	}
	var err error
	if f.sidecar, err = s.startSidecar(ctx, f.addresses); err != nil {
		return field{}, err
	}
	if s.settings.before != "" {
		f.before, err = s.startProgram(ctx, s.settings.before, f.addresses)
	}
	if err == nil {
		f.etcd, err = s.startEtcd(ctx)
	}
	if err != nil {
		f.stop()
		return field{}, err
	}
	return f, nil
}

// startEtcd starts as many servers of etcd's as there are of ZooKeeper's. The caller must stop them.
func (s *stage) startEtcd(ctx context.Context) (*etcdCluster, error) {
	s.counter++
	directory := filepath.Join(s.directory, strconv.Itoa(s.counter))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return nil, err
	}
	return startEtcd(ctx, directory, len(s.addresses()))
}

func (f field) stop() {
	f.sidecar.stop()
	if f.before != nil {
		f.before.stop()
	}
	if f.etcd != nil {
		f.etcd.stop()
	}
}

// transactions is how far the ensemble's history has come: its newest zxid.
func (s *stage) transactions(ctx context.Context) (int64, error) {
	var newest int64
	for _, server := range s.ensemble.Servers() {
		answer, err := ask(ctx, server, "srvr")
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(answer) {
			value, found := strings.CutPrefix(strings.TrimSpace(line), "Zxid: 0x")
			if !found {
				continue
			}
			zxid, err := strconv.ParseInt(value, 16, 64)
			if err != nil {
				return 0, err
			}
			newest = max(newest, zxid)
		}
	}
	return newest, nil
}

// ask asks again where a busy server has not answered within the second it is given.
func ask(ctx context.Context, server *ensemble.Server, word string) (answer string, err error) {
	for range 10 {
		if answer, err = server.Ask(ctx, word); err == nil || ctx.Err() != nil {
			return answer, err
		}
	}
	return answer, err
}

// warmUp has the servers do what they are measured with, so that their virtual machines have compiled it.
func (s *stage) warmUp(ctx context.Context) error {
	work := pairs{callers: 16, each: 500}
	if s.settings.quick {
		work.each = 50
	}
	if err := makeDirectories(ctx, s.addresses(), work.locks()); err != nil {
		return err
	}
	_, err := work.batch(ctx, field{addresses: s.addresses()}.contenders()[floorPlace])
	return err
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
