package configsync

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// Wire is an entry as the API sends it, as text where it is some.
func Wire(entry sidekeeper.Entry) *configv1.Entry {
	wire := &configv1.Entry{
		Key: entry.Key, Content: &configv1.Entry_Value{Value: entry.Value}, Version: entry.Version,
		Revision: entry.Revision, CreatedRevision: entry.CreatedRevision,
	}
	if isText(entry.Value) {
		wire.Content = &configv1.Entry_Text{Text: string(entry.Value)}
	}
	return wire
}

// inOrder lists entries in the order of their keys.
func inOrder(view map[string]*sidekeeper.Entry) (listed []sidekeeper.Entry) {
	for _, key := range slices.SortedFunc(maps.Keys(view), compareKeys) {
		listed = append(listed, *view[key])
	}
	return listed
}

// Collect reads a list to its end.
func Collect[T any](listed iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range listed {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Glance is as much of a value as fits beside other things.
func Glance(value []byte) string {
	const most = 40
	if !isText(value) {
		return fmt.Sprintf("(%d bytes)", len(value))
	}
	letters := []rune(string(value))
	if len(letters) > most {
		return show.Printable(string(letters[:most])) + "…"
	}
	return show.Printable(string(letters))
}
