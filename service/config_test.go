package service_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A registry is the configuration as the callers of a scene reach it.
type registry struct {
	*scene
	configv1.ConfigServiceClient

	byOperators configv1.ConfigServiceClient
}

func newRegistry(t *testing.T, change ...func(*service.Options)) *registry {
	t.Helper()
	return newScene(t, change...).registry()
}

func (s *scene) registry() *registry {
	operators := s.target()
	if s.memory == nil {
		operators = "unix:" + filepath.Dir(s.socket) + "/operators"
	}
	return &registry{s, configv1.NewConfigServiceClient(s.connection(s.target())), configv1.NewConfigServiceClient(s.connection(operators))}
}

// put writes a key and returns its version, or the error in words.
func (r *registry) put(key, value string, when ...*configv1.Precondition) string {
	r.t.Helper()
	response, err := r.Put(r.context(), putOf(key, value, when...))
	if err != nil {
		return outcome(err)
	}
	return fmt.Sprint("v", response.GetVersion())
}

func putOf(key, value string, when ...*configv1.Precondition) *configv1.PutRequest {
	request := &configv1.PutRequest{Key: key, Content: &configv1.PutRequest_Text{Text: value}}
	if len(when) > 0 {
		request.Precondition = when[0]
	}
	return request
}

func (r *registry) delete(key string) string {
	r.t.Helper()
	_, err := r.Delete(r.context(), &configv1.DeleteRequest{Key: key})
	return outcome(err)
}

// get is a key's value and version, or the error in words.
func (r *registry) get(request *configv1.GetRequest) string {
	r.t.Helper()
	response, err := r.Get(r.context(), request)
	if err != nil {
		return outcome(err)
	}
	return expect.Entry(response.GetEntry())
}

// entryInWords shows text as it is and bytes in quotes.
// facts are what an error tells beyond its reason.
func facts(err error) string {
	var words []string
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			for _, fact := range slices.Sorted(maps.Keys(info.GetMetadata())) {
				words = append(words, fact+"="+info.GetMetadata()[fact])
			}
		}
	}
	return strings.Join(words, " ")
}

var (
	whenVersion = func(version int32) *configv1.Precondition {
		return &configv1.Precondition{Condition: &configv1.Precondition_Version{Version: version}}
	}
	whenMissing = &configv1.Precondition{Condition: &configv1.Precondition_MustNotExist{MustNotExist: true}}
	whenThere   = &configv1.Precondition{Condition: &configv1.Precondition_MustExist{MustExist: true}}
)

func TestWhatWasPutIsReadAsBytesOrText(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("a/b", "häuser"), "v1")
		same(t, "get", r.get(&configv1.GetRequest{Key: "a/b"}), `a/b="häuser"@v1`)
		same(t, "get as text", r.get(&configv1.GetRequest{Key: "a/b", AsText: true}), "a/b=häuser@v1")
		bytes := &configv1.PutRequest{Key: "a/b", Content: &configv1.PutRequest_Value{Value: []byte{0xff, 0}}}
		if response, err := r.Put(r.context(), bytes); err != nil || response.GetVersion() != 2 || response.GetRevision() <= 0 {
			t.Error(response, err)
		}
		same(t, "get what is no text", r.get(&configv1.GetRequest{Key: "a/b", AsText: true}), `a/b="\xff\x00"@v2`)
		same(t, "get what is no key", r.get(&configv1.GetRequest{Key: "a"}), "NotFound KEY_NOT_FOUND")
	})
}

func TestALinearizableGetShowsWhatTheReaderHasNotSeen(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("a", "old"), "v1")
		r.ensemble.Lag()
		r.must(r.ensemble.memory.Set("/sidekeeper/config/a", []byte("new")))
		local, linearizable := configv1.Consistency_CONSISTENCY_LOCAL, configv1.Consistency_CONSISTENCY_LINEARIZABLE
		same(t, "local", r.get(&configv1.GetRequest{Key: "a", AsText: true, Consistency: local}), "a=old@v1")
		same(t, "default", r.get(&configv1.GetRequest{Key: "a", AsText: true}), "a=old@v1")
		same(t, "linearizable", r.get(&configv1.GetRequest{Key: "a", AsText: true, Consistency: linearizable}), "a=new@v2")
	})
}

func TestPreconditionsAreKept(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "update of nothing", r.put("a", "1", whenThere), "FailedPrecondition PRECONDITION_FAILED")
		same(t, "first", r.put("a", "1", whenMissing), "v1")
		same(t, "again", r.put("a", "1", whenMissing), "FailedPrecondition PRECONDITION_FAILED")
		same(t, "with its version", r.put("a", "2", whenVersion(1)), "v2")
		_, err := r.Put(r.context(), putOf("a", "3", whenVersion(1)))
		same(t, "with an old version", outcome(err)+" "+facts(err), "FailedPrecondition PRECONDITION_FAILED key=a version=2")
		_, err = r.Put(r.context(), putOf("b", "3", whenVersion(1)))
		same(t, "what is missing", outcome(err)+" "+facts(err), "FailedPrecondition PRECONDITION_FAILED key=b")
		_, err = r.Delete(r.context(), &configv1.DeleteRequest{Key: "a", Precondition: whenVersion(9)})
		same(t, "delete of another version", outcome(err)+" "+facts(err), "FailedPrecondition PRECONDITION_FAILED key=a version=2")
	})
}

func TestKeysAreDeletedOneByOneAndByOperatorsAltogether(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	for _, key := range []string{"a", "a/b", "a/c/d"} {
		same(t, "put", r.put(key, "1"), "v1")
	}
	same(t, "delete", r.delete("a"), "FailedPrecondition KEY_HAS_CHILDREN")
	same(t, "delete", r.delete("a/b"), "OK")
	same(t, "delete", r.delete("a/b"), "NotFound KEY_NOT_FOUND")
	all := &configv1.DeleteRequest{Key: "a", Recursive: true}
	_, err := r.Delete(r.context(), all)
	same(t, "a caller deletes all", outcome(err), "PermissionDenied OPERATOR_ONLY")
	response, err := r.byOperators.Delete(r.context(), all)
	same(t, "an operator deletes all", fmt.Sprint(outcome(err), response.GetDeleted()), "OK2")
	_, err = r.byOperators.Delete(r.context(), all)
	same(t, "an operator deletes nothing", outcome(err), "NotFound KEY_NOT_FOUND")
}

func TestACommitIsAllOrNothing(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("gone", "1"), "v1")
		put := func(key string) *configv1.Operation {
			return &configv1.Operation{Operation: &configv1.Operation_Put{Put: putOf(key, "1")}}
		}
		remove := func(key string) *configv1.Operation {
			return &configv1.Operation{Operation: &configv1.Operation_Delete{Delete: &configv1.DeleteRequest{Key: key}}}
		}
		check := func(key string, when *configv1.Precondition) *configv1.Operation {
			return &configv1.Operation{Operation: &configv1.Operation_Check{Check: &configv1.CheckRequest{Key: key, Precondition: when}}}
		}
		commit := func(operations ...*configv1.Operation) (*configv1.CommitResponse, error) {
			return r.Commit(r.context(), &configv1.CommitRequest{Operations: operations})
		}
		done, err := commit(put("a"), remove("gone"), put("b"), check("c", whenMissing))
		r.must(err)
		same(t, "results", len(done.GetResults()), 4)
		first, second := done.GetResults()[0], done.GetResults()[2]
		if first.GetVersion() != 1 || first.GetRevision() <= 0 || first.GetRevision() != second.GetRevision() {
			t.Error(done)
		}
		_, err = commit(put("d"), check("a", whenVersion(7)))
		same(t, "a check", outcome(err)+" "+facts(err), "FailedPrecondition PRECONDITION_FAILED key=a operation=1 version=1")
		_, err = commit(put("d"), remove("gone"))
		same(t, "a delete", outcome(err)+" "+facts(err), "NotFound KEY_NOT_FOUND key=gone operation=1")
		same(t, "what was not done", r.get(&configv1.GetRequest{Key: "d"}), "NotFound KEY_NOT_FOUND")
	})
}

func TestListShowsPagesOfKeysWithTheirValues(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		for _, key := range []string{"b/c", "b", "b-a", "a"} {
			same(t, "put", r.put(key, key), "v1")
		}
		var pages []string
		for token, more := "", true; more; more = token != "" {
			page, err := r.List(r.context(), &configv1.ListRequest{PageSize: 2, PageToken: token, AsText: true})
			r.must(err)
			for _, entry := range page.GetEntries() {
				pages = append(pages, expect.Entry(entry))
			}
			pages, token = append(pages, "|"), page.GetNextPageToken()
		}
		same(t, "all", strings.Join(pages, " "), "a=a@v1 b=b@v1 | b/c=b/c@v1 b-a=b-a@v1 |")
		page, err := r.List(r.context(), &configv1.ListRequest{Prefix: "b"})
		r.must(err)
		same(t, "below b", len(page.GetEntries()), 2)
	})
}

func TestAPageOfLargeValuesIsNoLongerThanAMessage(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		large := strings.Repeat("x", 1_000_000)
		for _, key := range []string{"a", "b", "c", "d"} {
			same(t, "put", r.put(key, large), "v1")
		}
		page, err := r.List(r.context(), &configv1.ListRequest{})
		r.must(err)
		same(t, "on the first page", len(page.GetEntries()), 3)
		page, err = r.List(r.context(), &configv1.ListRequest{PageToken: page.GetNextPageToken()})
		r.must(err)
		same(t, "on the last page", len(page.GetEntries()), 1)
		same(t, "another page", page.GetNextPageToken(), "")
	})
}

// What the ensemble does to a write is told as it is: nothing was sent, or nobody knows.
func TestALostReplyIsToldAsSuch(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		for _, c := range []struct {
			name string
			fail func(standin.Hook)
			err  error
			want string
		}{
			{"before it was sent", r.ensemble.Before, recipes.ErrUnreachable, "Unavailable ENSEMBLE_UNREACHABLE"},
			{"after it was sent", r.ensemble.After, recipes.ErrOutcomeUnknown, "Aborted OUTCOME_UNKNOWN"},
			{"by access control", r.ensemble.After, recipes.ErrDenied, "PermissionDenied ENSEMBLE_DENIED"},
		} {
			c.fail(func(o standin.Operation) error {
				if o.Name == "Commit" {
					return c.err
				}
				return nil
			})
			same(t, "put: "+c.name, r.put("a/"+strings.ReplaceAll(c.name, " ", "-"), "1"), c.want)
			c.fail(nil)
		}
	})
}
