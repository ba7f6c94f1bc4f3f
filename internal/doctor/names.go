package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/sidekeeper/sidekeeper/internal/quota"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	manyNameBytes  = 1 << 20 // in one directory; 4 MiB of them are not read any more
	mostNamesAsked = 1000    // directories that are looked at
)

// quotas looks at who may change the quotas, by which anybody could lift them or stop others.
func (e *examination) quotas(ctx context.Context) error {
	looked, err := e.ensemble.Inspect(ctx, quota.Root)
	if errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrDenied) {
		return nil
	}
	if err == nil {
		e.permissions(quota.Root, looked)
	}
	return err
}

// names judges how many bytes of names lie in the directories below the roots, those nearest to a root first.
func (e *examination) names(ctx context.Context) error {
	waiting, met := slices.Clone(e.Directories), map[string]bool{}
	for asked := 0; asked < mostNamesAsked && len(waiting) > 0; asked++ {
		directory := waiting[0]
		waiting = waiting[1:]
		if met[directory] {
			continue
		}
		met[directory] = true
		names, err := e.ensemble.Children(ctx, directory)
		large, is := errors.AsType[*recipes.LargeDirectory](err)
		switch {
		case is:
			e.findf(Problem, directory, "delete names that are not needed, one by one, and spread new ones over several prefixes",
				"has %d bytes of names, more than sidecars read (%d): no caller can list it", large.Bytes, large.Max)
		case errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrDenied):
		case err != nil:
			return err
		}
		bytes := 0
		for _, name := range names {
			bytes += len(name) + 4
			if len(waiting) < mostNamesAsked {
				waiting = append(waiting, directory+"/"+name)
			}
		}
		if bytes >= manyNameBytes {
			e.findf(Warning, directory, "delete names that are not needed, and spread new ones over several prefixes",
				"has %d names of %d bytes: sidecars add none beyond 2 MiB", len(names), bytes)
		}
	}
	return nil
}
