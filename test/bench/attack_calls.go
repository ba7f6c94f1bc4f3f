package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A tally is what an attacker was told.
type tally struct{ answered, refused atomic.Int64 }

func (t *tally) count(err error) {
	if status.Code(err) == codes.ResourceExhausted {
		t.refused.Add(1)
	} else {
		t.answered.Add(1)
	}
}

func (t *tally) String() string {
	return fmt.Sprintf("%d calls answered, %d refused", t.answered.Load(), t.refused.Load())
}

// Directories of the configuration that are listed: with 3.9 MB of names, and with more than may be listed.
const (
	longDirectory    = "attack/long"
	tooLongDirectory = "attack/too-long"
)

// makeLongDirectories makes them, unless they are there.
func makeLongDirectories(ctx context.Context, addresses []string) error {
	opened, err := openDirect(ctx, addresses)
	if err != nil {
		return err
	}
	defer opened.close()
	session := opened.(*directCaller).session
	for name, keys := range map[string]int{longDirectory: 57_000, tooLongDirectory: 70_000} {
		directory := "/sidekeeper/config"
		for part := range strings.SplitSeq(name, "/") {
			directory = path.Join(directory, part)
			if _, err = session.Create(directory, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return fmt.Errorf("create %s: %w", directory, err)
			}
		}
		if errors.Is(err, zk.ErrNodeExists) {
			continue
		}
		const atOnce = 250
		for first := 0; first < keys; first += atOnce {
			var creates []any
			for i := range atOnce {
				child := fmt.Sprintf("%s/%064d", directory, first+i)
				creates = append(creates, &zk.CreateRequest{Path: child, Acl: zk.WorldACL(zk.PermAll)})
			}
			if _, err := session.Multi(creates...); err != nil {
				return fmt.Errorf("create below %s: %w", directory, err)
			}
		}
	}
	return nil
}

func listDirectories(ctx context.Context, on victim) (string, error) {
	return onConnection(on, func(connection *grpc.ClientConn, told *tally) {
		config := configv1.NewConfigServiceClient(connection)
		again(ctx, 32, 0, func(worker int) {
			prefix := []string{longDirectory, tooLongDirectory}[worker%2]
			_, err := config.List(ctx, &configv1.ListRequest{Prefix: prefix, PageSize: 1000})
			told.count(err)
		})
	})
}

func onConnection(on victim, do func(*grpc.ClientConn, *tally)) (string, error) {
	connection, err := on.dial()
	if err != nil {
		return "", err
	}
	defer connection.Close()
	var told tally
	do(connection, &told)
	return told.String(), nil
}

const largeValue = 900_000

func putLarge(ctx context.Context, config configv1.ConfigServiceClient, key string) error {
	_, err := config.Put(ctx, &configv1.PutRequest{Key: key, Content: &configv1.PutRequest_Value{Value: make([]byte, largeValue)}})
	return err
}

func writeLarge(ctx context.Context, on victim) (string, error) {
	return onConnection(on, func(connection *grpc.ClientConn, told *tally) {
		config := configv1.NewConfigServiceClient(connection)
		again(ctx, 32, 0, func(worker int) { told.count(putLarge(ctx, config, fmt.Sprint("attack/large/", worker))) })
	})
}

// takeLeases opens leases and watches keys until it gets no more, and keeps them.
func takeLeases(ctx context.Context, on victim) (string, error) {
	return onConnection(on, func(connection *grpc.ClientConn, told *tally) {
		leases, config := leasev1.NewLeaseServiceClient(connection), configv1.NewConfigServiceClient(connection)
		again(ctx, 1000, time.Second, func(worker int) {
			var stream grpc.ClientStream
			var err error
			if worker%10 == 0 {
				var keys []string
				for i := range 1000 {
					keys = append(keys, fmt.Sprintf("attack/watched/%d-%d", worker, i))
				}
				stream, err = config.Watch(ctx, &configv1.WatchRequest{Keys: keys})
			} else {
				stream, err = leases.Open(ctx, &leasev1.OpenRequest{})
			}
			for first := true; err == nil; first = false {
				if err = stream.RecvMsg(messageOf(worker%10 == 0)); first {
					told.count(err)
				}
			}
		})
	})
}

func messageOf(watch bool) proto.Message {
	if watch {
		return &configv1.WatchResponse{}
	}
	return &leasev1.OpenResponse{}
}

// neverRead watches large values on four connections and takes nothing of what it is sent, while the values change.
func neverRead(ctx context.Context, on victim) (string, error) {
	connection, err := on.dial()
	if err != nil {
		return "", err
	}
	defer connection.Close()
	config := configv1.NewConfigServiceClient(connection)
	keys := make([]string, 4)
	for i := range keys {
		keys[i] = fmt.Sprint("attack/unread/", i)
		_ = putLarge(ctx, config, keys[i]) // the next one does it, if the sidecar is busy
	}
	request, err := proto.Marshal(&configv1.WatchRequest{Keys: keys})
	if err != nil {
		return "", err
	}
	go again(ctx, 1, 100*time.Millisecond, func(int) { _ = putLarge(ctx, config, keys[0]) })
	return keepCalls(ctx, on, 4, 1000, true, func(f *frames) error {
		return f.call(configv1.ConfigService_Watch_FullMethodName, framed(request))
	})
}

// callOnAndOn asks what costs the asker little.
func callOnAndOn(ctx context.Context, on victim) (string, error) {
	return onConnection(on, func(connection *grpc.ClientConn, told *tally) {
		locks, config := lockv1.NewLockServiceClient(connection), configv1.NewConfigServiceClient(connection)
		again(ctx, 64, 0, func(worker int) {
			var err error
			if worker%2 == 0 {
				_, err = locks.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{strings.Repeat("0", 32)}})
			} else {
				_, err = config.Get(ctx, &configv1.GetRequest{Key: "attack/none"})
			}
			told.count(err)
		})
	})
}
