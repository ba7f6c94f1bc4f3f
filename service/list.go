package service

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	usualPage   = 100
	largestPage = 1000
	tokenForm   = "1 " // what a page token begins with, before it is encoded
)

// mostScanned bounds how many directories one page looks into. Most hold nobody when their locks are not in use, so
// a page may be short although others follow.
const mostScanned = 1000

type listRequest interface {
	pageRequest
	GetPrefix() string
}

// listPage looks into the directories of the names that are asked for, in order, until a page is full. What is listed as nil, is left
// out.
func listPage[E any](
	ctx context.Context, tree recipes.Tree, d directory, request listRequest, listed func(context.Context, name) (*E, error),
) (entries []*E, token string, err error) {
	page, err := parsePage(request)
	if err != nil {
		return nil, "", err
	}
	prefix := request.GetPrefix()
	if prefix != "" {
		if _, err := parseName("prefix", prefix); err != nil {
			return nil, "", err
		}
	}
	names, err := d.names(ctx, tree)
	if err != nil {
		return nil, "", err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n <= page.after || !(name{n}).under(prefix) })
	slices.Sort(names)
	looked := 0
	for looked < len(names) {
		if len(entries) == page.size || looked == mostScanned {
			return entries, nextToken(names[looked-1]), nil
		}
		some := names[looked:min(len(names), looked+page.size-len(entries), mostScanned)]
		found, err := lookInto(ctx, some, listed)
		if err != nil {
			return nil, "", err
		}
		entries = append(entries, found...)
		looked += len(some)
	}
	return entries, "", nil
}

// lookInto looks into directories, many at the same time, and returns what is listed of them, in their order.
func lookInto[E any](ctx context.Context, names []string, listed func(context.Context, name) (*E, error)) ([]*E, error) {
	found := make([]*E, len(names))
	err := recipes.EachOf(len(names), func(i int) (err error) {
		found[i], err = listed(ctx, name{names[i]})
		return err
	})
	return slices.DeleteFunc(found, func(entry *E) bool { return entry == nil }), err
}

// names are all names in the directory, in no order.
func (d directory) names(ctx context.Context, tree recipes.Tree) ([]string, error) {
	return d.namesBelow(ctx, tree, "")
}

// namesBelow goes through the nodes below one that lies at this place in the directory. What others have put there and is no
// name is left out, and with it all below it. So are places in a queue, and what is below another library's name and cannot be read.
func (d directory) namesBelow(ctx context.Context, tree recipes.Tree, at string) ([]string, error) {
	children, err := tree.Children(ctx, d.root+at)
	if errors.Is(err, recipes.ErrNoNode) || at != "" && isUnreadable(err, name{at[1:]}) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, child := range children {
		found, ok := d.name((at + "/" + child)[1:])
		if !ok || at != "" && recipes.IsContender(child) {
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

// isUnreadable says of an error that another program keeps its lock, of that name, to itself. A list must not fail for that.
func isUnreadable(err error, of name) bool {
	return !of.ours() && (errors.Is(err, recipes.ErrDenied) || errors.Is(err, recipes.ErrDirectoryTooLarge))
}

// A page is which part of a list is asked for. It is told by the last entry seen, so that it outlives a sidecar and
// entries that come and go.
type page struct {
	size  int
	after string // empty for the first page
}

type pageRequest interface {
	GetPageSize() int32
	GetPageToken() string
}

func parsePage(request pageRequest) (page, error) {
	size := int(request.GetPageSize())
	if size < 0 || size > largestPage {
		return page{}, invalid("page_size", fmt.Sprint(size), fmt.Sprintf("from 0 to %d", largestPage))
	}
	if size == 0 {
		size = usualPage
	}
	if request.GetPageToken() == "" {
		return page{size: size}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(request.GetPageToken())
	after, known := strings.CutPrefix(string(text), tokenForm)
	if err != nil || !known || after == "" {
		return page{}, invalidToken(request)
	}
	return page{size: size, after: after}, nil
}

func invalidToken(request pageRequest) error {
	return invalid("page_token", request.GetPageToken(), "next_page_token of the page before")
}

// nextToken asks for what comes after this entry.
func nextToken(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenForm + last))
}
