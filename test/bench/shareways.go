package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// sidekeeperShares has members share with the Go client.
func sidekeeperShares(on *sidecar) func(context.Context, string, *workBook) (func(kill bool), error) {
	return func(ctx context.Context, member string, of *workBook) (func(kill bool), error) {
		client, err := sidekeeper.Dial("unix://" + on.socket)
		if err != nil {
			return nil, err
		}
		sharing, stop := context.WithCancel(ctx)
		var dead atomic.Bool
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = client.Share(sharing, "shares", func(ctx context.Context, item *sidekeeper.Item) error {
				number, _ := strconv.Atoi(item.Name())
				if dead.Load() {
					return nil
				}
				of.takes(number, member)
				<-ctx.Done()
				if !dead.Load() {
					of.leaves(number, member)
				}
				return nil
			}, sidekeeper.ShareOptions{Member: member, OnError: func(string, error) {}})
		}()
		return func(kill bool) {
			if kill {
				dead.Store(true)
				_ = client.Close()
				of.dies(member)
			}
			stop()
			if !kill {
				<-over
				_ = client.Close()
			}
		}, nil
	}
}

// moduloShares has each member of a group take the items whose hash, modulo the number of members, is its rank among them.
func moduloShares(on *sidecar, items int) func(context.Context, string, *workBook) (func(kill bool), error) {
	return func(ctx context.Context, member string, of *workBook) (func(kill bool), error) {
		client, err := sidekeeper.Dial("unix://" + on.socket)
		if err != nil {
			return nil, err
		}
		lease, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{})
		if err != nil {
			return nil, err
		}
		joined, err := client.Join(ctx, "modulo", member, sidekeeper.JoinOptions{Lease: lease})
		if err != nil {
			return nil, err
		}
		working, stop := context.WithCancel(ctx)
		m := &modulo{client: client, lease: lease, member: member, of: of, has: map[int]context.CancelFunc{}}
		go m.follow(working, items)
		return func(kill bool) {
			if kill {
				m.dead.Store(true)
				_ = client.Close()
				of.dies(member)
			}
			stop()
			if !kill {
				m.working.Wait()
				_ = joined.Leave(ctx)
				_ = client.Close()
			}
		}, nil
	}
}

type modulo struct {
	client *sidekeeper.Client
	lease  *sidekeeper.Lease
	member string
	of     *workBook

	dead    atomic.Bool
	has     map[int]context.CancelFunc
	working sync.WaitGroup
}

func (m *modulo) follow(ctx context.Context, items int) {
	for change, err := range m.client.WatchGroup(ctx, "modulo") {
		if err != nil {
			return
		}
		names := []string{}
		for _, each := range change.View.Members {
			names = append(names, each.Member)
		}
		rank := slices.Index(names, m.member)
		for item := range items {
			hash := fnv.New32a()
			fmt.Fprint(hash, item)
			mine := rank >= 0 && int(hash.Sum32())%len(names) == rank
			switch stop := m.has[item]; {
			case mine && stop == nil:
				working, stop := context.WithCancel(ctx)
				m.has[item] = stop
				m.working.Go(func() { m.work(working, item) })
			case !mine && stop != nil:
				stop()
				delete(m.has, item)
			}
		}
	}
}

func (m *modulo) work(ctx context.Context, item int) {
	lock, err := m.client.Acquire(ctx, fmt.Sprint("modulo/", item), sidekeeper.LockOptions{Lease: m.lease})
	for errors.Is(err, sidekeeper.ErrAlreadyContending) { // it is given back just now
		if pause(ctx, 10*time.Millisecond) != nil {
			return
		}
		lock, err = m.client.Acquire(ctx, fmt.Sprint("modulo/", item), sidekeeper.LockOptions{Lease: m.lease})
	}
	if err != nil {
		return
	}
	if !m.dead.Load() {
		m.of.takes(item, m.member)
	}
	<-ctx.Done()
	if !m.dead.Load() {
		m.of.leaves(item, m.member)
	}
	_ = lock.Release(context.WithoutCancel(ctx))
}

//go:embed testdata/partitioner.py
var partitioner string

// kazooShares has members of processes of their own share by kazoo's recipe. KAZOO_PYTHON is an interpreter that has kazoo.
func kazooShares(addresses []string, items int) func(context.Context, string, *workBook) (func(kill bool), error) {
	return func(ctx context.Context, member string, of *workBook) (func(kill bool), error) {
		python := os.Getenv("KAZOO_PYTHON")
		if python == "" {
			return nil, errors.New("KAZOO_PYTHON is not set: make an environment with `python3 -m venv DIR && DIR/bin/pip install kazoo==2.11.0`")
		}
		command := exec.CommandContext(ctx, python, "-c", partitioner, strings.Join(addresses, ","), member, strconv.Itoa(items))
		command.SysProcAttr = attributes()
		command.Stderr = os.Stderr
		output, err := command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := command.Start(); err != nil {
			return nil, err
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for lines := bufio.NewScanner(output); lines.Scan(); {
				number, err := strconv.Atoi(lines.Text()[1:])
				switch {
				case err != nil:
				case lines.Text()[0] == '+':
					of.takes(number, member)
				default:
					of.leaves(number, member)
				}
			}
			_ = command.Wait()
			of.dies(member)
		}()
		return func(kill bool) {
			if kill {
				_ = command.Process.Kill()
			} else {
				_ = command.Process.Signal(os.Interrupt)
			}
			<-over
		}, nil
	}
}
