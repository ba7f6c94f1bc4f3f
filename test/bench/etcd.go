package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidekeeper/sidekeeper/test/support/process"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

// An etcdCluster is servers of etcd's with their data on disk, which they sync to, as they do by default.
type etcdCluster struct {
	nursery   *process.Nursery
	servers   []*process.Process
	addresses []string
}

// startEtcd starts so many servers, whose data lies in this directory, and returns when they serve. The caller must stop them. It builds
// etcd if that has not been built before, which takes minutes.
func startEtcd(ctx context.Context, directory string, size int) (*etcdCluster, error) {
	program, err := toolchain.Program(ctx, "etcd")
	if err != nil {
		return nil, err
	}
	e := &etcdCluster{nursery: process.NewNursery()}
	ctx, cancel := context.WithTimeout(ctx, 3*startPatience)
	defer cancel()
	if err := e.start(ctx, program, directory, size); err != nil {
		e.stop()
		return nil, fmt.Errorf("etcd, whose logs are in %s: %w", directory, err)
	}
	return e, nil
}

func (e *etcdCluster) start(ctx context.Context, program, directory string, size int) error {
	var peers, members []string
	for i := range size {
		client, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		peer, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		e.addresses, peers = append(e.addresses, client), append(peers, "http://"+peer)
		members = append(members, fmt.Sprintf("etcd-%d=http://%s", i, peer))
	}
	for i := range size {
		name, client := "etcd-"+strconv.Itoa(i), "http://"+e.addresses[i]
		log, err := os.Create(filepath.Join(directory, name+".log"))
		if err != nil {
			return err
		}
		command := exec.Command(program, "--name", name, "--data-dir", filepath.Join(directory, name), "--log-level", "warn",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(members, ","))
		command.Stdout, command.Stderr = log, log
		server, err := e.nursery.Start(command, log)
		if err != nil {
			return err
		}
		e.servers = append(e.servers, server)
	}
	for i := range size {
		if err := e.awaitServing(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// awaitServing waits until a server grants leases, which takes a leader.
func (e *etcdCluster) awaitServing(ctx context.Context, number int) error {
	for {
		caller, err := openEtcd(ctx, e, number)
		if err == nil {
			caller.close()
			return nil
		}
		if ended := pause(ctx, 50*time.Millisecond); ended != nil {
			return err
		}
	}
}

func (e *etcdCluster) stop() {
	for _, server := range e.servers {
		server.End(syscall.SIGTERM)
	}
	e.nursery.Close()
}

// processes are the numbers of the servers'.
func (e *etcdCluster) processes() (all []int) {
	for _, server := range e.servers {
		all = append(all, server.ID())
	}
	return all
}

// An etcdCaller locks by the lock service of an etcd server, with a lease of its own, over a connection of its own.
type etcdCaller struct {
	connection *grpc.ClientConn
	lease      uint64
	key        []byte
}

const leaseSeconds = 60 // which the server's Lock keeps alive

// dial opens a connection to the server whose turn it is for the caller of this number.
func (e *etcdCluster) dial(number int) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+e.addresses[number%len(e.addresses)],
		append(staticWindows(), grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})))...)
}

func openEtcd(ctx context.Context, e *etcdCluster, number int) (caller, error) {
	connection, err := e.dial(number)
	if err != nil {
		return nil, err
	}
	c := &etcdCaller{connection: connection}
	granted, err := c.invoke(ctx, "/etcdserverpb.Lease/LeaseGrant", number64(nil, 1, leaseSeconds))
	if err == nil {
		c.lease, _, err = fieldTwo(granted)
	}
	if err != nil {
		connection.Close()
		return nil, err
	}
	return c, nil
}

func (c *etcdCaller) close() {
	_, _ = c.invoke(context.Background(), "/etcdserverpb.Lease/LeaseRevoke", number64(nil, 1, c.lease)) // or it expires
	c.connection.Close()
}

func (c *etcdCaller) lock(ctx context.Context, name string) error {
	request := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), name)
	answer, err := c.invoke(ctx, "/v3lockpb.Lock/Lock", number64(request, 2, c.lease))
	if err == nil {
		_, c.key, err = fieldTwo(answer)
	}
	return err
}

func (c *etcdCaller) unlock(ctx context.Context) error {
	request := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), c.key)
	_, err := c.invoke(ctx, "/v3lockpb.Lock/Unlock", request)
	return err
}

// A revisionTaker writes a key; the revision of the write is its number.
type revisionTaker struct{ etcdCaller }

func (r revisionTaker) close() { r.connection.Close() }

func (r revisionTaker) take(ctx context.Context) error {
	key := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), sequenceName)
	_, err := r.invoke(ctx, "/etcdserverpb.KV/Put", key)
	return err
}

func (c *etcdCaller) invoke(ctx context.Context, method string, request []byte) (answer []byte, err error) {
	err = c.connection.Invoke(ctx, method, &request, &answer)
	return answer, err
}

func number64(message []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(message, field, protowire.VarintType), value)
}

// fieldTwo is the second field of an answer, behind the header: the id of a lease, or the key of a lock.
func fieldTwo(message []byte) (number uint64, text []byte, err error) {
	for len(message) > 0 {
		field, kind, read := protowire.ConsumeField(message)
		if read < 0 {
			return 0, nil, protowire.ParseError(read)
		}
		if field == 2 {
			_, _, tag := protowire.ConsumeTag(message)
			if kind == protowire.VarintType {
				number, _ = protowire.ConsumeVarint(message[tag:])
			} else {
				text, _ = protowire.ConsumeBytes(message[tag:])
			}
			return number, text, nil
		}
		message = message[read:]
	}
	return 0, nil, errNoSecondField
}

var errNoSecondField = errors.New("an answer of etcd's lacks its second field")

// A bytesCodec sends messages as they are, so that the bench takes none of etcd's modules.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}
