package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// EnqueueAll makes ephemeral sequential children of several directories in one transaction; see recipes.Session.
func (s *Session) EnqueueAll(ctx context.Context, ends []recipes.QueueEnd, data []byte) ([]recipes.Enqueued, error) {
	sizes, sum, err := sizesOf(ends, data)
	if err != nil {
		return nil, err
	}
	asks, creations := asker{ctx: ctx, session: s}, make([]recipes.Change, len(ends))
	for i, end := range ends {
		creations[i] = recipes.Create(end.Dir+"/"+placePrefix(end.Marker), data)
	}
	if err := s.reserve(sum); err != nil {
		return nil, err
	}
	if err := s.client.reader.admitQuota(asks, creations...); err != nil {
		s.unreserve(sum)
		return nil, err
	}
	made, unasked, err := s.createAll(ctx, ends, data)
	if err = s.client.reader.concluded(asks, err, creations...); err != nil {
		s.unreserve(sum)
		return nil, err
	}
	for i, end := range ends {
		place := end.Dir + "/" + made[i].Name
		s.client.reader.expect(ctx, place)
		made[i].Gone = s.own(place, sizes[i], false)
		s.cover(place, 0, unasked[i])
	}
	return made, nil
}

// sizesOf are the longest paths that places at these ends can have.
func sizesOf(ends []recipes.QueueEnd, data []byte) (sizes []int, sum int, err error) {
	for _, end := range ends {
		size := len(end.Dir) + 1 + len(placePrefix(end.Marker)) + sequenceSize
		if size > maxPathBytes || len(data) > maxPlaceData {
			return nil, 0, fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, size, len(data))
		}
		sizes, sum = append(sizes, size), sum+size
	}
	return sizes, sum, nil
}

// createAll makes the nodes, and finds out what became of them where a reply was lost, as create does for one. Nothing had been asked of each at
// its unasked.
func (s *Session) createAll(
	ctx context.Context, ends []recipes.QueueEnd, data []byte,
) (made []recipes.Enqueued, unasked []instant, err error) {
	for {
		sent, unique := s.now(), placePrefix("")
		s.tellPlaces(trace.Asked, ends, func(i int) string { return unique + ends[i].Marker })
		made, err := call(ctx, s, "multi", func(*zk.Conn) ([]recipes.Enqueued, error) { return s.createPlaces(ends, unique, data) })
		switch err = whyRefused(err); {
		case err == nil:
			s.tellPlaces(trace.Made, ends, func(i int) string { return made[i].Name })
			return made, instants(sent, len(ends)), nil
		case errors.Is(err, recipes.ErrNoNode):
			s.tellPlaces(trace.Absent, ends, func(i int) string { return unique + ends[i].Marker })
			for _, end := range ends {
				if err := s.makeParents(ctx, end.Dir); err != nil {
					return nil, nil, err
				}
			}
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			if made, unasked, err := s.findAll(ctx, ends, unique, sent); made != nil || err != nil {
				return made, unasked, err
			}
		default:
			return nil, nil, err
		}
	}
}

// tellPlaces is tellPlace for a place at each of these ends.
func (s *Session) tellPlaces(kind trace.Kind, ends []recipes.QueueEnd, name func(int) string) {
	for i, end := range ends {
		s.tellPlace(kind, end.Dir, name(i))
	}
}

func instants(each instant, count int) []instant {
	all := make([]instant, count)
	for i := range all {
		all[i] = each
	}
	return all
}

// findAll searches until it is certain what became of places whose making was not answered. One that is found proves that all were made; where
// another one is missing then, somebody else has deleted it, and the rest is given up: there are none, and no error.
func (s *Session) findAll(
	ctx context.Context, ends []recipes.QueueEnd, unique string, sent instant,
) (made []recipes.Enqueued, unasked []instant, err error) {
	var found []string
	oldest := never
	for _, end := range ends {
		name, at, err := s.find(ctx, end.Dir, unique+end.Marker)
		switch {
		case err != nil:
			return nil, nil, err
		case name != "":
			found = append(found, end.Dir+"/"+name)
		}
		if at != 0 {
			oldest = min(oldest, at)
		}
		made, unasked = append(made, recipes.Enqueued{Path: end.Dir + "/" + name, Name: name}), append(unasked, max(sent, at))
	}
	switch {
	case len(found) == len(ends) && oldest != never && !s.promisesWithin(oldest):
		return s.findAll(ctx, ends, unique, sent) // the first ones were found long ago
	case len(found) == len(ends):
		return made, unasked, nil
	}
	for _, place := range found {
		s.Dequeue(ctx, place)
	}
	return nil, nil, s.Err()
}
