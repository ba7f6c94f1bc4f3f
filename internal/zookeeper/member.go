package zookeeper

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

var _ recipes.MemberSession = (*Session)(nil)

// Create makes an ephemeral node of that very name; see recipes.MemberSession.
func (s *Session) Create(
	ctx context.Context, member string, data []byte, guards ...recipes.Guard,
) (recipes.Node, *recipes.Signal, error) {
	if err := fits(member, data, guards...); err != nil {
		return recipes.Node{}, nil, err
	}
	asks, creation := asker{ctx: ctx, session: s}, recipes.Create(member, data)
	if err := s.reserve(len(member)); err != nil {
		return recipes.Node{}, nil, err
	}
	if err := s.client.reader.admit(asks, creation); err != nil {
		s.unreserve(len(member))
		return recipes.Node{}, nil, err
	}
	stat, sent, err := s.createMember(ctx, member, data, guards)
	if err = s.client.reader.concluded(asks, err, creation); err != nil {
		s.unreserve(len(member))
		return recipes.Node{}, nil, err
	}
	gone := s.own(member, len(member), true)
	s.cover(member, memberVersion, sent)
	made := memberOf(data, stat)
	made.Version = memberVersion // it may have another by now, after a lost reply
	return made, gone, nil
}

// createMember makes the node, and finds out what became of it where a reply was lost: if there is one then and it is
// this session's, it is what was made here, for no other request of this session can be under way (see inspect). Nobody had asked for its end
// at unasked.
func (s *Session) createMember(
	ctx context.Context, member string, data []byte, guards []recipes.Guard,
) (stat *zk.Stat, unasked instant, err error) {
	for {
		sent := s.now()
		stat, err := s.tryCreate(ctx, member, data, guards)
		switch {
		case errors.Is(err, recipes.ErrNoNode):
			if err := s.makeParents(ctx, path.Dir(member)); err != nil {
				return nil, 0, err
			}
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			stat, unasked, err := s.findMember(ctx, member)
			if !errors.Is(err, recipes.ErrNoNode) {
				return stat, max(sent, unasked), err
			}
		default:
			return stat, sent, err
		}
	}
}

// findMember looks for a member whose making was not answered. Until it is found, callers are told of validities that it does not bound: so it
// is looked for until none of them ends later than it could be asked for. One whose end somebody has asked for already is deleted, as if it had
// not been made: nobody was told of it. On a session that was come back to it may have stood before, and is left as it is.
func (s *Session) findMember(ctx context.Context, member string) (stat *zk.Stat, unasked instant, err error) {
	for {
		looked := s.now()
		stat, err := s.inspectOwn(ctx, member)
		switch {
		case err != nil:
			return nil, 0, err
		case stat.Version != memberVersion && s.isReturned():
			return stat, 0, nil
		case stat.Version != memberVersion:
			if err := s.deleteOwn(ctx, member); err != nil {
				return nil, 0, err
			}
			return nil, 0, recipes.ErrNoNode
		case s.promisesWithin(looked):
			return stat, looked, nil
		}
	}
}

// memberVersion is the version of a new member's data.
const memberVersion = 1

// tryCreate makes the node in one request that tells all there is to know of it.
func (s *Session) tryCreate(ctx context.Context, member string, data []byte, guards []recipes.Guard) (*zk.Stat, error) {
	return s.writeGuarded(ctx, guards,
		operation{kind: opCreate, path: member, acl: s.client.config.acl, number: zk.FlagEphemeral},
		operation{kind: opSetData, path: member, data: data, number: 0})
}

// writeGuarded carries out all of the operations or none, only while the guards' places stand, and returns what the last one has made of its
// node.
func (s *Session) writeGuarded(ctx context.Context, guards []recipes.Guard, operations ...operation) (*zk.Stat, error) {
	var all []operation
	for _, check := range recipes.Checks(guards) {
		all = append(all, operationOf(check, nil))
	}
	all = append(all, operations...)
	stat, err := call(ctx, s, "multi", func(*zk.Conn) (*zk.Stat, error) {
		results, err := s.multi(all...)
		if err != nil {
			return nil, err
		}
		return results[len(all)-1].stat, nil
	})
	return stat, whyRefused(recipes.Unguarded(err, len(guards)))
}

// whyRefused is why a transaction was refused, if it was, whichever of its operations that was.
func whyRefused(err error) error {
	if refusal, is := errors.AsType[*recipes.Refusal](err); is {
		return refusal.Err
	}
	return err
}

// Update replaces the data of a node that Create made; see recipes.MemberSession.
func (s *Session) Update(
	ctx context.Context, member string, data []byte, version int32, guards ...recipes.Guard,
) (recipes.Node, error) {
	if err := fits(member, data, guards...); err != nil {
		return recipes.Node{}, err
	}
	for {
		seen, err := s.inspectOwn(ctx, member)
		if errors.Is(err, recipes.ErrExists) {
			err = recipes.ErrNoNode // there is one, but not this session's
		}
		if err == nil && seen.Version != version {
			err = recipes.ErrBadVersion
		}
		if err != nil {
			return recipes.Node{}, err
		}
		stat, err := s.set(ctx, member, data, version, guards)
		switch {
		case err == nil:
			return memberOf(data, stat), nil
		case !errors.Is(err, recipes.ErrOutcomeUnknown):
			return recipes.Node{}, err
		}
	}
}

func (s *Session) set(ctx context.Context, member string, data []byte, version int32, guards []recipes.Guard) (*zk.Stat, error) {
	setting := operation{kind: opSetData, path: member, data: data, number: version}
	if len(guards) > 0 {
		return s.writeGuarded(ctx, guards, setting)
	}
	return call(ctx, s, "setData", func(*zk.Conn) (*zk.Stat, error) { return s.statOf(setting.request()) })
}

// Delete deletes a node that Create made, and no other.
func (s *Session) Delete(ctx context.Context, member string) {
	s.release(member, func() error { return s.deleteOwn(ctx, member) })
	s.client.reader.counts.changed(member, -1)
}

// deleteOwn deletes a member once it is certain that it is this session's.
func (s *Session) deleteOwn(ctx context.Context, member string) error {
	for {
		seen, err := s.inspectOwn(ctx, member)
		if err != nil {
			return err
		}
		_, err = call(ctx, s, "delete", func(*zk.Conn) (struct{}, error) { return struct{}{}, s.deleteNode(member, seen.Version) })
		if !errors.Is(err, recipes.ErrBadVersion) && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			return err
		}
	}
}

// inspectOwn reads the state of a node that should be this session's. ErrExists if it is somebody else's.
func (s *Session) inspectOwn(ctx context.Context, member string) (*zk.Stat, error) {
	stat, err := s.inspect(ctx, member)
	if err == nil && !s.Owns(memberOf(nil, stat)) {
		return nil, recipes.ErrExists
	}
	return stat, err
}

// inspect reads the state of a node on the session's own connection, after a transaction of its own. Before that, the ensemble
// has carried out or dropped whatever this session had asked for in vain: what comes over a connection that the session
// has left is refused. And the server shows what had been committed by then. Both are asked for in one write.
func (s *Session) inspect(ctx context.Context, member string) (*zk.Stat, error) {
	for refusals := 0; ; refusals++ {
		answered, sent, err := s.flushThen(ctx, existsOf(member))
		if err != nil {
			return nil, err
		}
		exists := s.begun(ctx, "exists", 0)
		exists.began = sent
		stat, err := answered[0].stat()
		err = exists.answered(err)
		if !errors.Is(err, recipes.ErrOutcomeUnknown) && !errors.Is(err, errThrottled) {
			return stat, err
		}
		s.rest(s.client.retryPause(refusals))
	}
}

// memberOf is a node as recipes see it, without its data.
func memberOf(data []byte, stat *zk.Stat) recipes.Node {
	node := nodeOf(data, stat)
	node.Data = nil
	return node
}
