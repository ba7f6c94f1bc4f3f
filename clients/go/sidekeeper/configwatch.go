package sidekeeper

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// ConfigEventKind is what a ConfigEvent tells.
type ConfigEventKind int

// The kinds of events. A watch begins with any number of ConfigState and one ConfigSynced.
const (
	ConfigState   ConfigEventKind = iota + 1 // a part of what there is at the beginning
	ConfigSynced                             // all there was at the beginning has been told
	ConfigChanged                            // something has changed
	ConfigStale                              // the ensemble is out of contact: earlier events may be out of date
	ConfigFresh                              // contact is back, and what happened meanwhile has been told
)

// A ConfigEvent is one message of a watch.
type ConfigEvent struct {
	Kind    ConfigEventKind
	Changes []ConfigChange // with ConfigState and ConfigChanged
}

// A ConfigChange is what has become of one key.
type ConfigChange struct {
	Entry     Entry // with Deleted, only its Key
	Deleted   bool
	Coalesced bool // the key had other values in between, which are not told
	Recreated bool // the key was deleted and made anew in between
}

// Watch tells the state of some keys, whether they are there or not, and then what changes. It ends with an error, also
// when ctx ends or the sidecar is away: what it has told may then be out of date.
func (c *Config) Watch(ctx context.Context, key string, more ...string) iter.Seq2[ConfigEvent, error] {
	return c.watch(ctx, &configv1.WatchRequest{Keys: append([]string{key}, more...)}, unheard)
}

// WatchPrefix tells the state of all keys at and below a prefix of whole segments, all if it is empty, and then what changes.
// It ends as Watch does.
func (c *Config) WatchPrefix(ctx context.Context, prefix string) iter.Seq2[ConfigEvent, error] {
	return c.watch(ctx, &configv1.WatchRequest{Prefix: prefix}, unheard)
}

func (c *Config) watch(ctx context.Context, request *configv1.WatchRequest, heard func()) iter.Seq2[ConfigEvent, error] {
	request.Keepalive = keepaliveEvery
	open := func(ctx context.Context) (grpc.ServerStreamingClient[configv1.WatchResponse], error) {
		return c.stub.Watch(ctx, request)
	}
	return messages(ctx, c.client.clock, open, eventFrom, heard)
}

// eventFrom reads a message; one of a kind that this client does not know is left out.
func eventFrom(wire *configv1.WatchResponse) (event ConfigEvent, known bool) {
	switch told := wire.GetEvent().(type) {
	case *configv1.WatchResponse_Entries:
		event.Kind = ConfigState
		event.Changes = each(told.Entries.GetEntries(), func(wire *configv1.Entry) ConfigChange { return ConfigChange{Entry: entryFrom(wire)} })
	case *configv1.WatchResponse_Synced:
		event.Kind = ConfigSynced
	case *configv1.WatchResponse_Changes:
		event.Kind = ConfigChanged
		event.Changes = each(told.Changes.GetChanges(), changeFrom)
	case *configv1.WatchResponse_Stale:
		event.Kind = ConfigStale
	case *configv1.WatchResponse_Fresh:
		event.Kind = ConfigFresh
	}
	return event, event.Kind != 0
}

func changeFrom(wire *configv1.Change) ConfigChange {
	if gone := wire.GetDeleted(); gone != nil {
		return ConfigChange{Entry: Entry{Key: gone.GetKey()}, Deleted: true}
	}
	put := wire.GetPut()
	return ConfigChange{Entry: entryFrom(put.GetEntry()), Coalesced: put.GetCoalesced(), Recreated: put.GetRecreated()}
}
