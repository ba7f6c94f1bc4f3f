package recipes

import "slices"

// A share is what one member has of a set's items while they are given out.
type share struct {
	name        string
	capacity    int
	fresh       bool     // it gets nothing new yet that fits elsewhere
	items       []string // in the order of the set
	least, most int      // of them, for it to have its part
}

// balance gives out the items of a set, and moves as few as it can. Members get parts in proportion to their capacities, and none more than its
// capacity. At equal capacity two parts differ by at most one item, or by 5 % of a part if that is more: that room spares moves. Fresh
// members get what fits nowhere else. Items that fit nowhere stay without a member. Of what moves, a member gives up its last items.
func balance(items []string, shares []*share) {
	place := placesOf(items)
	inOrder := func(some []string) { slices.SortFunc(some, func(a, b string) int { return place[a] - place[b] }) }
	var open, fresh []*share
	total := len(items)
	for _, of := range shares {
		of.cut(of.capacity)
		if of.fresh {
			total -= len(of.items)
			of.least, of.most = 0, of.capacity
			fresh = append(fresh, of)
		} else {
			open = append(open, of)
		}
	}
	bound(open, total, len(without(items, shares)))
	for _, of := range open {
		of.cut(of.most)
	}
	free := without(items, shares)
	for missing := shortBy(open) - len(free); missing > 0; missing-- {
		of := slices.MaxFunc(open, func(a, b *share) int { return len(a.items) - a.least - (len(b.items) - b.least) })
		free = append(free, of.items[len(of.items)-1])
		of.cut(len(of.items) - 1)
	}
	inOrder(free)
	for _, item := range free {
		of := neediest(open)
		if of == nil {
			of = neediest(fresh)
		}
		if of != nil {
			of.items = append(of.items, item)
		}
	}
	for _, of := range shares {
		inOrder(of.items)
	}
}

// cut leaves the member so many items at most.
func (s *share) cut(most int) { s.items = s.items[:min(len(s.items), most)] }

// without are the items that no member has.
func without(items []string, shares []*share) []string {
	had := map[string]bool{}
	for _, of := range shares {
		for _, item := range of.items {
			had[item] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return had[item] })
}

// bound finds the bounds of each part with which the fewest items move, of those with which parts are close enough to one another.
func bound(open []*share, total, free int) {
	capacity, widest := 0, 1
	for _, of := range open {
		capacity += of.capacity
	}
	if capacity == 0 {
		for _, of := range open {
			of.least, of.most = 0, 0
		}
		return
	}
	total = min(total, capacity)
	for _, of := range open {
		widest = max(widest, of.room(total, capacity))
	}
	best, fewest := 0, len(open)*MaxSetItems
	for higher := range widest {
		if moves := movesWith(open, total, capacity, higher, free); moves < fewest {
			best, fewest = higher, moves
		}
	}
	movesWith(open, total, capacity, best, free)
}

// room is by how many items parts of this capacity may differ.
func (s *share) room(total, capacity int) int { return max(1, total*s.capacity/(20*capacity)) }

// movesWith sets the bounds of all parts so much higher than they need be, and says how many items move then.
func movesWith(open []*share, total, capacity, higher, free int) (moves int) {
	for _, of := range open {
		room := of.room(total, capacity)
		of.most = (total*of.capacity+capacity-1)/capacity + min(higher, room-1)
		of.least = max(0, of.most-room)
		of.most = min(of.most, of.capacity)
		moves += max(0, len(of.items)-of.most)
	}
	return moves + max(0, shortBy(open)-free-moves)
}

// shortBy is how many items are missing for each member to have its least.
func shortBy(open []*share) (missing int) {
	for _, of := range open {
		missing += max(0, of.least-len(of.items))
	}
	return missing
}

// neediest is the member that shall get the next item: it has the smallest part of its most; nil if none has room.
func neediest(open []*share) (found *share) {
	for _, of := range open {
		short, before := of.least-len(of.items), 0
		if found != nil {
			before = found.least - len(found.items)
		}
		switch {
		case len(of.items) >= of.most:
		case found == nil, short > max(0, before),
			short <= 0 && before <= 0 && len(of.items)*found.most < len(found.items)*of.most:
			found = of
		}
	}
	return found
}
