package expect

import (
	"fmt"
	"strings"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// Watched is a message of a watch of the configuration, in words.
func Watched(message *configv1.WatchResponse) string {
	var words []string
	switch event := message.GetEvent().(type) {
	case *configv1.WatchResponse_Entries:
		for _, entry := range event.Entries.GetEntries() {
			words = append(words, Entry(entry))
		}
	case *configv1.WatchResponse_Synced:
		words = []string{"synced"}
	case *configv1.WatchResponse_Changes:
		for _, change := range event.Changes.GetChanges() {
			words = append(words, Change(change))
		}
	case *configv1.WatchResponse_Stale:
		words = []string{"stale"}
	case *configv1.WatchResponse_Fresh:
		words = []string{"fresh"}
	}
	return strings.Join(words, " ")
}

// Change is a change of a key, in words.
func Change(change *configv1.Change) string {
	if gone := change.GetDeleted(); gone != nil {
		return "-" + gone.GetKey()
	}
	words := Entry(change.GetPut().GetEntry())
	if change.GetPut().GetRecreated() {
		words += " recreated"
	}
	if change.GetPut().GetCoalesced() {
		words += " coalesced"
	}
	return words
}

// Entry is an entry of the configuration, in words.
func Entry(entry *configv1.Entry) string {
	if text, isText := entry.GetContent().(*configv1.Entry_Text); isText {
		return fmt.Sprintf("%s=%s@v%d", entry.GetKey(), text.Text, entry.GetVersion())
	}
	return fmt.Sprintf("%s=%q@v%d", entry.GetKey(), entry.GetValue(), entry.GetVersion())
}
