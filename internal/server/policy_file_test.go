// It looks inside: when a file is looked at is up to the test, and a handler is called without a connection.

package server

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
)

const somebody = `rules: [{identities: ["uid:1"], methods: ["sidekeeper.lock.v1.LockService/*"]}]`

// A followedPolicy is a file that is looked at when the test says so.
type followedPolicy struct {
	*policyFile
	t     *testing.T
	book  *logbook
	state string
}

func (f *followedPolicy) allows(identity string) bool {
	return f.Last().Allows(identity, "sidekeeper.lock.v1.LockService/Get", nil)
}

// sees looks once, and compares who is allowed, and how often somebody complained.
func (f *followedPolicy) sees(when string, first, second bool, complaints int) {
	f.t.Helper()
	trouble := f.Look()
	same(f.t, "uid:1 "+when, f.allows("uid:1"), first)
	same(f.t, "uid:2 "+when, f.allows("uid:2"), second)
	same(f.t, "complaints "+when, strings.Count(f.book.Text(), "policy not applied"), complaints)
	same(f.t, "state "+when, f.state == "refused", complaints > 0 && trouble != nil)
}

func newFollowedPolicy(t *testing.T, path string) *followedPolicy {
	t.Helper()
	f := &followedPolicy{t: t, book: &logbook{}}
	log := f.book.Logger()
	refused := func(refused bool) { f.state = map[bool]string{true: "refused", false: "good"}[refused] }
	file, err := openPolicy(path, log, zap.NewNop(), refused, func() {})
	must(t, err)
	f.policyFile = file
	return f
}

func TestAPolicyIsFollowedHoweverItsFileIsChanged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := folder + "/policy.yaml"
	other := strings.ReplaceAll(somebody, "uid:1", "uid:2")
	put := func(name, text string) { authority.Replace(t, folder+"/"+name, text) }
	put("policy.yaml", somebody)
	f := newFollowedPolicy(t, path)
	f.sees("at first", true, false, 0)
	age, err := os.Stat(path)
	must(t, err)
	put("policy.yaml", other)
	must(t, os.Chtimes(path, age.ModTime(), age.ModTime()))
	f.sees("after a change that shows in neither age nor size", false, true, 0)
	must(t, os.WriteFile(path, []byte(somebody), 0o600))
	must(t, os.Chtimes(path, age.ModTime(), age.ModTime()))
	f.sees("after a change in place", true, false, 0)
	put("policy.yaml", "")
	f.sees("while it is empty", true, false, 1)
	f.sees("while it is still empty", true, false, 1)
	put("policy.yaml", other)
	f.sees("when it is good again", false, true, 1)
	must(t, os.Remove(path))
	f.sees("while it is gone", false, true, 2)
	put("policy.yaml", other)
	f.sees("when it is back as it was", false, true, 2)
	same(t, "state", f.state, "good")
}

// Kubernetes keeps a ConfigMap's files as links through a link, which it leads elsewhere.
func TestAPolicyInAVolumeOfKubernetesIsFollowed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for version, text := range map[string]string{"1": somebody, "2": strings.ReplaceAll(somebody, "uid:1", "uid:2")} {
		must(t, os.Mkdir(folder+"/.."+version, 0o700))
		authority.Replace(t, folder+"/.."+version+"/policy.yaml", text)
	}
	must(t, os.Symlink("..1", folder+"/..data"))
	must(t, os.Symlink("..data/policy.yaml", folder+"/policy.yaml"))
	f := newFollowedPolicy(t, folder+"/policy.yaml")
	f.sees("at first", true, false, 0)
	must(t, os.Symlink("..2", folder+"/..new"))
	must(t, os.Rename(folder+"/..new", folder+"/..data"))
	f.sees("after the swap", false, true, 0)
}

// A handler that reads a request by itself, however it was called, gets none that the policy denies.
func TestAStreamsHandlerNeverSeesADeniedRequest(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/policy.yaml"
	must(t, os.WriteFile(path, []byte("rules: []"), 0o600))
	admission := &admissions{
		metrics: NewMetrics(), log: callLog{zap.NewNop()}, mostStreams: 1,
		authorizer: authorizer{newFollowedPolicy(t, path).policyFile, &openStreams{}},
		denials:    denials{zap.NewNop()},
	}
	request, err := proto.Marshal(&lockv1.AcquireRequest{Name: "orders"})
	must(t, err)
	info := &grpc.StreamServerInfo{FullMethod: lockv1.LockService_Acquire_FullMethodName}
	err = admission.stream(nil, &dialogue{t: t, ctx: t.Context(), request: request}, info, func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&lockv1.AcquireRequest{}); err != nil {
			return err
		}
		t.Error("the handler has the request")
		return nil
	})
	told, _ := service.StatusOf(err)
	same(t, "answer", outcome(told.Err()), "PermissionDenied POLICY_DENIED")
}
