package sidekeeper

import "iter"

const pageSize = 1000

// each reads all messages of a list.
func each[Wire, Item any](wire []Wire, from func(Wire) Item) []Item {
	var items []Item
	for _, message := range wire {
		items = append(items, from(message))
	}
	return items
}

// pages asks for one page after the other of a list, and reads their messages.
func pages[Wire, Item any](from func(Wire) Item, next func(token string) ([]Wire, string, error)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for token, more := "", true; more; more = token != "" {
			var entries []Wire
			var err error
			if entries, token, err = next(token); err != nil {
				var none Item
				yield(none, fromStatus(err))
				return
			}
			for _, entry := range entries {
				if !yield(from(entry), nil) {
					return
				}
			}
		}
	}
}
