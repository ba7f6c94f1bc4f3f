package configsync

import (
	"context"
	"errors"
	"slices"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A listing has each key as it was at some moment, one after the other: what one commit has written may be in it in part.
type listing []sidekeeper.Entry

// maxListings is how often a prefix is listed to find a moment.
const maxListings = 10

var errRestless = errors.New("the keys change faster than they can be read: try again")

// atOneMoment returns what was stored as a whole at some moment, after before was seen. It is found if two listings, one after
// the other, see the same, or by betweenListings. What no listing can show is a key that is made and deleted again within two of
// them. Before may be nil.
func atOneMoment(ctx context.Context, config *sidekeeper.Config, prefix string, before listing) (listing, error) {
	looks := []listing{before}
	for range maxListings {
		next, err := Collect(config.List(ctx, prefix))
		if err != nil {
			return nil, err
		}
		last := len(looks) - 1
		if looks[last].same(next) {
			return next, nil
		}
		if last > 0 {
			if found, ok := betweenListings(looks[last-1], looks[last], next); ok {
				return found, nil
			}
		}
		looks = append(looks, next)
	}
	return nil, exit.With(exit.NotObtained, errRestless)
}

// same says whether nothing was written between two looks.
func (l listing) same(as listing) bool {
	return slices.EqualFunc(l, as, func(a, b sidekeeper.Entry) bool { return a.Key == b.Key && a.Revision == b.Revision })
}

// betweenListings tells what was stored at one moment while the second of three listings was made, if that can be known although
// values change all the time.
//
// If no key was made or deleted between the first listing and the third, what the second saw was there all the time, and all else was not. Let
// newest be the largest revision that the second listing saw. The third listing read each key after that was written. So a key
// that it finds no newer than newest had this very value then. A key that it finds newer, by exactly one version, was
// written once since the second listing read it, and after newest: before that it had the value of the second listing. (If newest was written
// before the second listing began, then all that it saw was there when it began, and the same answer is right.)
func betweenListings(first, second, third listing) (found listing, ok bool) {
	if len(first) != len(second) || len(second) != len(third) {
		return nil, false
	}
	newest := int64(0)
	for _, entry := range second {
		newest = max(newest, entry.Revision)
	}
	for i, entry := range second {
		after := third[i]
		if !sameMaking(first[i], entry) || !sameMaking(entry, after) {
			return nil, false
		}
		switch {
		case after.Revision <= newest:
			found = append(found, after)
		case after.Version == entry.Version+1:
			found = append(found, entry)
		default:
			return nil, false
		}
	}
	return found, true
}

func sameMaking(one, other sidekeeper.Entry) bool {
	return one.Key == other.Key && one.CreatedRevision == other.CreatedRevision
}
