package zookeeper

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// makeParents makes dir and what it lies in, as containers, which vanish by themselves once they are empty: also while
// this is being done.
func (s *Session) makeParents(ctx context.Context, dir string) error {
	for {
		err := s.makeContainer(ctx, dir)
		parent := path.Dir(dir)
		if !errors.Is(err, recipes.ErrNoNode) || parent == "/" {
			return err
		}
		if err := s.makeParents(ctx, parent); err != nil {
			return err
		}
	}
}

// makeContainer makes one container, or a plain node where the ensemble has no containers. That somebody else made it is
// as good.
func (s *Session) makeContainer(ctx context.Context, dir string) error {
	if s.client.permanent[dir] {
		return s.makePlain(ctx, dir)
	}
	if err := s.client.reader.admit(asker{ctx: ctx, session: s}, recipes.Create(dir, nil)); err != nil {
		return err
	}
	err := s.makeNode(ctx, "createContainer", operation{kind: opCreateContainer, path: dir, acl: s.client.config.acl, number: zk.FlagContainer})
	if errors.Is(err, errRefused) {
		return s.makePlain(ctx, dir)
	}
	return err
}

// makePlain makes a node that stays.
func (s *Session) makePlain(ctx context.Context, dir string) error {
	return s.makeNode(ctx, "create", operation{kind: opCreate, path: dir, acl: s.client.config.acl, number: zk.FlagPersistent})
}

// makeNode makes a node, again as long as the reply is lost. That it is there is as good.
func (s *Session) makeNode(ctx context.Context, name string, creation operation) error {
	for {
		_, err := call(ctx, s, name, func(*zk.Conn) (struct{}, error) {
			_, err := s.askOwn(creation.request())
			return struct{}{}, err
		})
		switch {
		case errors.Is(err, recipes.ErrExists):
			return nil
		case !errors.Is(err, recipes.ErrOutcomeUnknown):
			return s.client.reader.concluded(asker{ctx: ctx, session: s}, err, recipes.Create(creation.path, nil))
		}
	}
}

// makePermanent makes the configured directories. If the session fails on the way it is over anyway.
func (s *Session) makePermanent(ctx context.Context) error {
	for _, dir := range s.client.config.Directories {
		if err := s.makeParents(ctx, dir); err != nil {
			s.Close(ctx)
			return err
		}
	}
	return nil
}
