package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// The ways of sharing by which a sharer may share.
const (
	byAssignment = "assignment"
	byModulo     = "modulo"
)

// A sharer is a member in a process of its own, which shares items with others until it is asked to leave.
type sharer struct {
	Way    string `json:"way"`    // byAssignment or byModulo
	Socket string `json:"socket"` // of the sidecar
	Member string `json:"member"`
	Items  int    `json:"items"`

	saying sync.Mutex
	out    io.Writer
}

// serveSharer is the program of a sharer, which its flag has in JSON.
func serveSharer(ctx context.Context, about string, out io.Writer) error {
	s := &sharer{out: out}
	if err := json.Unmarshal([]byte(about), s); err != nil {
		return fmt.Errorf("-sharer: %w", err)
	}
	client, err := sidekeeper.Dial("unix://" + s.Socket)
	if err != nil {
		return err
	}
	defer client.Close()
	if s.Way == byModulo {
		return s.divide(ctx, client)
	}
	err = client.Share(ctx, "shares", s.handle, sidekeeper.ShareOptions{Member: s.Member})
	if ctx.Err() != nil { // it was asked to leave
		return nil
	}
	return err
}

// say says that the sharer works on an item now, '+', or does not any more, '-'.
func (s *sharer) say(sign byte, item string) {
	s.saying.Lock()
	defer s.saying.Unlock()
	fmt.Fprintf(s.out, "%c%s\n", sign, item)
}

func (s *sharer) handle(ctx context.Context, item *sidekeeper.Item) error {
	s.say('+', item.Name())
	<-ctx.Done()
	s.say('-', item.Name())
	return nil
}

// divide has the sharer take the items whose hash, modulo the number of members, is its rank among them.
func (s *sharer) divide(ctx context.Context, client *sidekeeper.Client) error {
	lease, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{})
	if err != nil {
		return err
	}
	joined, err := client.Join(ctx, "modulo", s.Member, sidekeeper.JoinOptions{Lease: lease})
	if err != nil {
		return err
	}
	var working sync.WaitGroup
	has := map[int]context.CancelFunc{}
	begin := func(item int) (stop context.CancelFunc) {
		itsWork, stop := context.WithCancel(ctx)
		working.Go(func() { s.work(itsWork, client, lease, item) })
		return stop
	}
	for change, err := range client.WatchGroup(ctx, "modulo") {
		if err != nil {
			break
		}
		names := []string{}
		for _, each := range change.View.Members {
			names = append(names, each.Member)
		}
		s.take(names, has, begin)
	}
	working.Wait()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return joined.Leave(leaving)
}

// take begins and ends work on items as the members are now.
func (s *sharer) take(names []string, has map[int]context.CancelFunc, begin func(item int) (stop context.CancelFunc)) {
	rank := slices.Index(names, s.Member)
	for item := range s.Items {
		hash := fnv.New32a()
		fmt.Fprint(hash, item)
		mine := rank >= 0 && int(hash.Sum32())%len(names) == rank
		switch stop := has[item]; {
		case mine && stop == nil:
			has[item] = begin(item)
		case !mine && stop != nil:
			stop()
			delete(has, item)
		}
	}
}

func (s *sharer) work(ctx context.Context, client *sidekeeper.Client, lease *sidekeeper.Lease, item int) {
	lock, err := client.Acquire(ctx, fmt.Sprint("modulo/", item), sidekeeper.LockOptions{Lease: lease})
	for errors.Is(err, sidekeeper.ErrAlreadyContending) { // it is given back just now
		if pause(ctx, 10*time.Millisecond) != nil {
			return
		}
		lock, err = client.Acquire(ctx, fmt.Sprint("modulo/", item), sidekeeper.LockOptions{Lease: lease})
	}
	if err != nil {
		return
	}
	s.say('+', strconv.Itoa(item))
	<-ctx.Done()
	s.say('-', strconv.Itoa(item))
	_ = lock.Release(context.WithoutCancel(ctx))
}
