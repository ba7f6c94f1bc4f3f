package service_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

func TestEveryFieldOfTheConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		ctx := r.context()
		const bad = "../etc"
		noText := []byte(strings.Repeat("x", 1_000_000+1))
		get := func(request *configv1.GetRequest) error { _, err := r.Get(ctx, request); return err }
		put := func(request *configv1.PutRequest) error { _, err := r.Put(ctx, request); return err }
		remove := func(request *configv1.DeleteRequest) error { _, err := r.byOperators.Delete(ctx, request); return err }
		list := func(request *configv1.ListRequest) error { _, err := r.List(ctx, request); return err }
		commit := func(operations ...*configv1.Operation) error {
			_, err := r.Commit(ctx, &configv1.CommitRequest{Operations: operations})
			return err
		}
		watch := func(request *configv1.WatchRequest) error {
			stream, err := r.Watch(ctx, request)
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}
		putting := func(request *configv1.PutRequest) *configv1.Operation {
			return &configv1.Operation{Operation: &configv1.Operation_Put{Put: request}}
		}
		deleting := func(request *configv1.DeleteRequest) *configv1.Operation {
			return &configv1.Operation{Operation: &configv1.Operation_Delete{Delete: request}}
		}
		checking := func(key string, when *configv1.Precondition) *configv1.Operation {
			return &configv1.Operation{Operation: &configv1.Operation_Check{Check: &configv1.CheckRequest{Key: key, Precondition: when}}}
		}
		of := func(condition *configv1.Precondition) *configv1.PutRequest { return putOf("a", "1", condition) }
		noVersion := whenVersion(-1)
		falsely := &configv1.Precondition{Condition: &configv1.Precondition_MustNotExist{}}
		falselyToo := &configv1.Precondition{Condition: &configv1.Precondition_MustExist{}}
		none := &configv1.Precondition{}
		var many []*configv1.Operation
		for i := range 101 {
			many = append(many, putting(putOf(fmt.Sprint("k", i), "1")))
		}
		large := func(key string) *configv1.Operation { return putting(putOf(key, strings.Repeat("x", 1_000_000/2))) }
		for _, c := range []struct {
			field string
			err   error
		}{
			{"key", get(&configv1.GetRequest{})},
			{"key", get(&configv1.GetRequest{Key: bad})},
			{"key", get(&configv1.GetRequest{Key: strings.Repeat("a/", 100) + "a"})},
			{"consistency", get(&configv1.GetRequest{Key: "a", Consistency: 9})},
			{"key", put(putOf("a//b", "1"))},
			{"key", put(putOf("zookeeper/a", "1"))},
			{"value", put(&configv1.PutRequest{Key: "a"})},
			{"value", put(&configv1.PutRequest{Key: "a", Content: &configv1.PutRequest_Value{Value: noText}})},
			{"text", put(putOf("a", string(noText)))},
			{"precondition", put(of(none))},
			{"precondition.version", put(of(noVersion))},
			{"precondition.must_not_exist", put(of(falsely))},
			{"precondition.must_exist", put(of(falselyToo))},
			{"key", remove(&configv1.DeleteRequest{Key: "a%b"})},
			{"precondition", remove(&configv1.DeleteRequest{Key: "a", Precondition: whenMissing})},
			{"precondition", remove(&configv1.DeleteRequest{Key: "a", Precondition: whenThere, Recursive: true})},
			{"precondition.version", remove(&configv1.DeleteRequest{Key: "a", Precondition: noVersion})},
			{"prefix", list(&configv1.ListRequest{Prefix: "a/"})},
			{"page_size", list(&configv1.ListRequest{PageSize: -1})},
			{"page_size", list(&configv1.ListRequest{PageSize: 1001})},
			{"page_token", list(&configv1.ListRequest{PageToken: "?"})},
			{"page_token", list(&configv1.ListRequest{PageToken: base64.RawURLEncoding.EncodeToString([]byte("../x"))})},
			{"operations", commit()},
			{"operations", commit(many...)},
			{"operations", commit(large("a"), large("b"))},
			{"operations[1]", commit(checking("a", whenThere), &configv1.Operation{})},
			{"operations[1]", commit(checking("a", whenThere), putting(putOf("a", "1")))},
			{"operations[1]", commit(deleting(&configv1.DeleteRequest{Key: "a"}), putting(putOf("a/b/c", "1")))},
			{"operations[0]", commit(checking("a/b", whenMissing), deleting(&configv1.DeleteRequest{Key: "a"}))},
			{"operations[0].put.key", commit(putting(putOf(bad, "1")))},
			{"operations[0].put.value", commit(putting(&configv1.PutRequest{Key: "a"}))},
			{"operations[0].put.precondition.version", commit(putting(of(noVersion)))},
			{"operations[0].delete.key", commit(deleting(&configv1.DeleteRequest{}))},
			{"operations[0].delete.recursive", commit(deleting(&configv1.DeleteRequest{Key: "a", Recursive: true}))},
			{"operations[0].delete.precondition", commit(deleting(&configv1.DeleteRequest{Key: "a", Precondition: whenMissing}))},
			{"operations[0].check.key", commit(checking("", whenThere))},
			{"operations[0].check.precondition", commit(checking("a", nil))},
			{"operations[0].check.precondition", commit(checking("a", none))},
			{"prefix", watch(&configv1.WatchRequest{Prefix: bad})},
			{"prefix", watch(&configv1.WatchRequest{Prefix: "a", Keys: []string{"a"}})},
			{"keys", watch(&configv1.WatchRequest{Keys: []string{"a", ""}})},
			{"keys", watch(&configv1.WatchRequest{Keys: []string{"a", "b", "a"}})},
			{"keys", watch(&configv1.WatchRequest{Keys: make([]string, 1000+1)})},
		} {
			same(t, c.field, outcome(c.err), "InvalidArgument INVALID_FIELD "+c.field)
		}
		if names := r.ensemble.memory.Names("/sidekeeper/config"); len(names) != 0 {
			t.Errorf("bad requests have written %q", names)
		}
	})
}

// A hundred keys of the longest names with as many bytes as are allowed, in a directory with a long path: more than one
// request of the ensemble holds.
func TestACommitThatTheEnsembleCannotTakeIsRefused(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		request := &configv1.CommitRequest{}
		for i := range 100 {
			key := strings.Repeat(strings.Repeat("k", 64)+"/", 3) + fmt.Sprintf("%05d", i)
			value := strings.Repeat("x", 1_000_000/100-len(key))
			request.Operations = append(request.Operations, &configv1.Operation{Operation: &configv1.Operation_Put{Put: putOf(key, value)}})
		}
		_, err := r.Commit(r.context(), request)
		same(t, "commit", outcome(err), "InvalidArgument INVALID_FIELD operations")
	}, func(o *service.Options) { o.ConfigRoot = strings.Repeat("/settings", 15) })
}
