package sidekeeper

import (
	"context"
	"iter"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// Config is the configuration that a Client reaches. It is safe for use by many goroutines at once.
type Config struct {
	stub   configv1.ConfigServiceClient
	client *Client
}

// Config gives access to the configuration.
func (c *Client) Config() *Config {
	return &Config{configv1.NewConfigServiceClient(c.connection), c}
}

// An Entry is a key with its value.
type Entry struct {
	Key             string
	Value           []byte // not in what Put and Commit return
	Version         int32  // for preconditions
	Revision        int64  // of the write, larger than that of every earlier one of any key
	CreatedRevision int64  // of the key; another one tells that it was deleted and made anew
}

func entryFrom(wire *configv1.Entry) Entry {
	return Entry{
		Key: wire.GetKey(), Value: wire.GetValue(), Version: wire.GetVersion(),
		Revision: wire.GetRevision(), CreatedRevision: wire.GetCreatedRevision(),
	}
}

// Get reads a key as the sidecar's own connection to the ensemble shows it. ErrKeyNotFound.
func (c *Config) Get(ctx context.Context, key string) (Entry, error) {
	return c.get(ctx, &configv1.GetRequest{Key: key})
}

// GetLinearizable reads a key; what it returns is at least as new as all that anybody had written before it was called.
// ErrKeyNotFound.
func (c *Config) GetLinearizable(ctx context.Context, key string) (Entry, error) {
	return c.get(ctx, &configv1.GetRequest{Key: key, Consistency: configv1.Consistency_CONSISTENCY_LINEARIZABLE})
}

func (c *Config) get(ctx context.Context, request *configv1.GetRequest) (Entry, error) {
	reply, err := c.stub.Get(ctx, request)
	if err != nil {
		return Entry{}, fromStatus(err)
	}
	return entryFrom(reply.GetEntry()), nil
}

// A Precondition is what must be true of a key. Of several, the last counts.
type Precondition struct{ wire *configv1.Precondition }

// IfVersion demands that the key has this version.
func IfVersion(version int32) Precondition {
	return Precondition{&configv1.Precondition{Condition: &configv1.Precondition_Version{Version: version}}}
}

// IfMissing demands that there is no such key.
func IfMissing() Precondition {
	return Precondition{&configv1.Precondition{Condition: &configv1.Precondition_MustNotExist{MustNotExist: true}}}
}

// IfExists demands that there is such a key.
func IfExists() Precondition {
	return Precondition{&configv1.Precondition{Condition: &configv1.Precondition_MustExist{MustExist: true}}}
}

func lastOf(preconditions []Precondition) *configv1.Precondition {
	if len(preconditions) == 0 {
		return nil
	}
	return preconditions[len(preconditions)-1].wire
}

// Put writes a key and returns the entry without its value. ErrPreconditionFailed; with ErrOutcomeUnknown it may have
// been written, or may still be in a moment.
func (c *Config) Put(ctx context.Context, key string, value []byte, preconditions ...Precondition) (Entry, error) {
	request := putRequest(key, value, preconditions)
	request.Guards = c.client.guards(ctx)
	reply, err := c.stub.Put(ctx, request)
	if err != nil {
		return Entry{}, fromStatus(err)
	}
	return Entry{Key: key, Version: reply.GetVersion(), Revision: reply.GetRevision()}, nil
}

func putRequest(key string, value []byte, preconditions []Precondition) *configv1.PutRequest {
	return &configv1.PutRequest{
		Key: key, Content: &configv1.PutRequest_Value{Value: value}, Precondition: lastOf(preconditions),
	}
}

// Delete deletes a key. ErrKeyNotFound, ErrPreconditionFailed, ErrKeyHasChildren.
func (c *Config) Delete(ctx context.Context, key string, preconditions ...Precondition) error {
	_, err := c.stub.Delete(ctx, &configv1.DeleteRequest{Key: key, Precondition: lastOf(preconditions), Guards: c.client.guards(ctx)})
	return fromStatus(err)
}

// DeleteAll deletes a key with all keys below it, for operators, and says how many it has deleted.
func (c *Config) DeleteAll(ctx context.Context, key string) (deleted int, err error) {
	reply, err := c.stub.Delete(ctx, &configv1.DeleteRequest{Key: key, Recursive: true})
	return int(reply.GetDeleted()), fromStatus(err)
}

// List shows keys with their values, in the order of keys: all, or those at and below a prefix of whole segments. An
// error ends it.
func (c *Config) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return pages(entryFrom, func(token string) ([]*configv1.Entry, string, error) {
		reply, err := c.stub.List(ctx, &configv1.ListRequest{Prefix: prefix, PageSize: pageSize, PageToken: token})
		return reply.GetEntries(), reply.GetNextPageToken(), err
	})
}

// A Commit is what to do, all or nothing: at most 100 operations, each on a key of its own. The zero Commit is empty.
type Commit struct{ operations []*configv1.Operation }

// Put adds a write.
func (c *Commit) Put(key string, value []byte, preconditions ...Precondition) {
	c.add(&configv1.Operation{Operation: &configv1.Operation_Put{Put: putRequest(key, value, preconditions)}})
}

// Delete adds a deletion.
func (c *Commit) Delete(key string, preconditions ...Precondition) {
	c.add(&configv1.Operation{Operation: &configv1.Operation_Delete{
		Delete: &configv1.DeleteRequest{Key: key, Precondition: lastOf(preconditions)},
	}})
}

// Check adds a condition on a key that is not written.
func (c *Commit) Check(key string, precondition Precondition) {
	c.add(&configv1.Operation{Operation: &configv1.Operation_Check{
		Check: &configv1.CheckRequest{Key: key, Precondition: precondition.wire},
	}})
}

func (c *Commit) add(operation *configv1.Operation) { c.operations = append(c.operations, operation) }

// Commit carries out a Commit. It returns an entry without its value for each put, at the place of the operation. If nothing was
// done for want of a precondition, the Error's Metadata tells the `operation`, counted from 0, the `key`, and its `version`
// if it is there.
func (c *Config) Commit(ctx context.Context, commit *Commit) ([]Entry, error) {
	reply, err := c.stub.Commit(ctx, &configv1.CommitRequest{Operations: commit.operations, Guards: c.client.guards(ctx)})
	if err != nil {
		return nil, fromStatus(err)
	}
	entries := make([]Entry, len(reply.GetResults()))
	for i, result := range reply.GetResults() {
		key := commit.operations[i].GetPut().GetKey()
		entries[i] = Entry{Key: key, Version: result.GetVersion(), Revision: result.GetRevision()}
	}
	return entries, nil
}
