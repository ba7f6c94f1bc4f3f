package service

import (
	"context"
	"errors"
	"slices"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostScanned bounds how many directories one page looks into. Most hold nobody when their locks are not in use, so
// a page may be short although others follow.
const mostScanned = 1000

func (l *lockService) List(ctx context.Context, request *lockv1.ListRequest) (*lockv1.ListResponse, error) {
	page, err := parsePage(request)
	if err != nil {
		return nil, err
	}
	prefix := request.GetPrefix()
	if prefix != "" {
		if _, err := parseName("prefix", prefix); err != nil {
			return nil, err
		}
	}
	names, err := l.directory.names(ctx, l.services.ensemble)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n <= page.after || !(name{n}).under(prefix) })
	slices.Sort(names)
	return l.listPage(ctx, names, page.size)
}

// listPage looks into the directories of names, in order, until a page is full.
func (l *lockService) listPage(ctx context.Context, names []string, size int) (*lockv1.ListResponse, error) {
	response := &lockv1.ListResponse{}
	for i, text := range names {
		if len(response.GetLocks()) == size || i == mostScanned {
			response.NextPageToken = nextToken(names[i-1])
			break
		}
		contenders, err := l.directory.lock(name{text}).Contenders(ctx, l.services.ensemble)
		switch {
		case errors.Is(err, recipes.ErrDirectory), err == nil && contenders == 0:
		case err != nil:
			return nil, err
		default:
			response.Locks = append(response.Locks, &lockv1.Lock{Name: text, Contenders: int32(contenders)})
		}
	}
	return response, nil
}

// names are all names in the directory, in no order.
func (d directory) names(ctx context.Context, tree recipes.Tree) ([]string, error) {
	return d.namesBelow(ctx, tree, "")
}

// namesBelow goes through the nodes below one that lies at this place in the directory. What others have put there and is no
// name is left out, and with it all below it; so are contenders, whose names are too long for a segment.
func (d directory) namesBelow(ctx context.Context, tree recipes.Tree, at string) ([]string, error) {
	children, err := tree.Children(ctx, d.root+at)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, child := range children {
		found, ok := d.name((at + "/" + child)[1:])
		if !ok {
			continue
		}
		names = append(names, found.text)
		if d.nested {
			below, err := d.namesBelow(ctx, tree, at+"/"+child)
			if err != nil {
				return nil, err
			}
			names = append(names, below...)
		}
	}
	return names, nil
}
