package recipes

import "golang.org/x/sync/errgroup"

// readsAtOnce is how many requests of one look are under way at the same time.
const readsAtOnce = 32

// EachOf calls do for 0 to count−1, several at the same time, and returns when all have returned, with the first error.
// It is for reading many nodes: a request takes far longer on its way than in the ensemble.
func EachOf(count int, do func(i int) error) error {
	if count == 1 {
		return do(0)
	}
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	for i := range count {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
