package zookeeper

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Commit carries out all changes or none; see recipes.Store. They do not belong to any session.
func (t tree) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	operations, err := t.reader.operations(changes)
	if err != nil {
		return nil, err
	}
	a, cancel := t.asker(ctx)
	defer cancel()
	if err := t.reader.admit(a, changes...); err != nil {
		return nil, err
	}
	nodes, err := write(t.reader, a, "multi", func(s *Session, withdrawn *atomic.Bool) ([]recipes.Node, error) {
		results, err := s.multiUnless(withdrawn, operations...)
		if err != nil {
			return nil, err
		}
		nodes := make([]recipes.Node, len(changes))
		for i, result := range results {
			if result.stat != nil {
				nodes[i] = nodeOf(changes[i].Data, result.stat)
				nodes[i].Data = nil
			}
		}
		return nodes, nil
	})
	return nodes, t.reader.concluded(a, err, changes...)
}

// MakeDirectory makes a directory and what it lies in; see recipes.Store.
func (t tree) MakeDirectory(ctx context.Context, directory string) error {
	if err := fits(directory, nil); err != nil {
		return err
	}
	a, cancel := t.asker(ctx)
	defer cancel()
	_, err := ask(t.reader, a, func(v *view) (struct{}, error) {
		return wait(a, launchWrite(v, func() (struct{}, error) {
			return struct{}{}, v.session.makeParents(a.ctx, directory)
		}))
	})
	return err
}

// operations are the changes as a multi has them, if they fit into one request.
func (r *reader) operations(changes []recipes.Change) ([]operation, error) {
	acl := r.client.config.acl
	size := headerBytes + operationBytes
	operations := make([]operation, len(changes))
	for i, change := range changes {
		if len(change.Path) > maxPathBytes {
			return nil, fmt.Errorf("%w: path of %d", recipes.ErrTooLarge, len(change.Path))
		}
		size += operationBytes + lengthBytes + len(change.Path) + numberBytes
		if change.Kind == recipes.KindCreate || change.Kind == recipes.KindSet {
			size += lengthBytes + len(change.Data)
		}
		if change.Kind == recipes.KindCreate {
			size += bytesOf(acl)
		}
		if operations[i] = operationOf(change, acl); operations[i].kind == 0 {
			return nil, fmt.Errorf("change of kind %d", change.Kind)
		}
	}
	if size > recipes.MostBytes {
		return nil, fmt.Errorf("%w: %d", recipes.ErrTooLarge, size)
	}
	return operations, nil
}

func operationOf(change recipes.Change, acl []zk.ACL) operation {
	switch change.Kind {
	case recipes.KindCreate:
		flags := int32(zk.FlagPersistent)
		if change.Numbered {
			flags = zk.FlagSequence
		}
		return operation{kind: opCreate, path: change.Path, data: change.Data, acl: acl, number: flags}
	case recipes.KindSet:
		return operation{kind: opSetData, path: change.Path, data: change.Data, number: change.Version}
	case recipes.KindDelete:
		return operation{kind: opDelete, path: change.Path, number: change.Version}
	case recipes.KindCheck:
		return checkOf(change.Path, change.Version)
	}
	return operation{}
}

// What a request takes besides paths and data.
const (
	headerBytes    = 8 // number and kind of the request
	operationBytes = 9 // before each operation of a transaction, and after the last one
	lengthBytes    = 4 // of a path, of data, of a list
	numberBytes    = 4 // a version, or flags
)

func bytesOf(acl []zk.ACL) int {
	size := lengthBytes
	for _, entry := range acl {
		size += numberBytes + 2*lengthBytes + len(entry.Scheme) + len(entry.ID)
	}
	return size
}

// fits refuses what is too long for one request of a lease.
func fits(node string, data []byte, guards ...recipes.Guard) error {
	checks := 0
	for _, guard := range guards {
		checks += operationBytes + lengthBytes + len(guard.Path) + numberBytes
	}
	if len(node) > maxPathBytes || len(data) > maxPlaceData || len(data)+checks > maxPlaceData+maxGuards {
		return fmt.Errorf("%w: path of %d, data of %d, guards of %d", recipes.ErrTooLarge, len(node), len(data), checks)
	}
	return nil
}
