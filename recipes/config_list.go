package recipes

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// A Page is which part of the keys to list.
type Page struct {
	Prefix string                 // of whole segments; empty for all
	After  string                 // the key after which to begin; empty to begin with the first
	Most   int                    // keys, at least 1
	Bytes  int                    // of keys and values; one key is listed however large it is
	IsKey  func(text string) bool // whether this can be a key; what others have put there may be none
}

// List shows the keys of a page, in the order of CompareKeys, and whether more may follow. It reads about as much as the
// page holds, and the names that lie beside it.
func (c Config) List(ctx context.Context, tree Tree, page Page) (entries []Entry, more bool, err error) {
	l := &listing{Page: page, config: c, tree: tree}
	if page.Prefix == "" {
		err = l.below(ctx, "")
	} else {
		err = l.all(ctx, []string{page.Prefix})
	}
	if errors.Is(err, errFull) {
		return l.entries, true, nil
	}
	return l.entries, false, err
}

// errFull ends a listing whose page is full.
var errFull = errors.New("the page is full")

// A listing is a page that is being filled.
type listing struct {
	Page

	config  Config
	tree    Tree
	entries []Entry
	bytes   int
}

// all lists keys that lie side by side, each with what lies below it. They are read some at a time, as many as there is likely
// to be room for.
func (l *listing) all(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		some := keys[:min(len(keys), l.ahead())]
		keys = keys[len(some):]
		states := make([]nodeState, len(some))
		err := EachOf(len(some), func(i int) (err error) {
			states[i], err = readState(ctx, l.tree, l.config.path(some[i]))
			return err
		})
		if err != nil {
			return err
		}
		for i, key := range some {
			if err := l.one(ctx, key, states[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ahead is how many keys to read at once.
func (l *listing) ahead() int {
	const few = 4
	if len(l.entries) < few {
		return few
	}
	fit := (l.Bytes - l.bytes) / (l.bytes/len(l.entries) + 1)
	return max(1, min(readsAtOnce, fit+1, l.Most-len(l.entries)+1))
}

// one lists a key, unless it comes before the page, and what lies below it.
func (l *listing) one(ctx context.Context, key string, seen nodeState) error {
	if seen.isKey() && (l.After == "" || CompareKeys(key, l.After) > 0) {
		if err := l.add(entryOf(key, seen.node)); err != nil {
			return err
		}
	}
	if !seen.there || seen.node.Children == 0 { // which may be −1
		return nil
	}
	return l.below(ctx, key)
}

func (l *listing) add(entry Entry) error {
	size := len(entry.Key) + len(entry.Value)
	if len(l.entries) == l.Most || len(l.entries) > 0 && l.bytes+size > l.Bytes {
		return errFull
	}
	l.entries = append(l.entries, entry)
	l.bytes += size
	return nil
}

// below lists what lies below a key. What comes before the page, with all below it, is not read.
func (l *listing) below(ctx context.Context, key string) error {
	names, err := l.tree.Children(ctx, l.config.path(key))
	if err != nil && !errors.Is(err, ErrNoNode) {
		return err
	}
	keys := make([]string, 0, len(names))
	for _, name := range names {
		child := strings.TrimPrefix(key+"/"+name, "/")
		before := l.After != "" && CompareKeys(child, l.After) < 0 && !liesBelow(l.After, child)
		if !before && l.IsKey(child) {
			keys = append(keys, child)
		}
	}
	slices.SortFunc(keys, CompareKeys)
	return l.all(ctx, keys)
}
