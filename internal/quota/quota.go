// Package quota reads, writes and obeys ZooKeeper's own quotas: how many nodes may lie at and below a path, and how many bytes of data they
// may hold. They are nodes themselves, below /zookeeper/quota, so that they are the same for all sidecars. The servers count; with
// zookeeper.enforceQuota=true they refuse what exceeds a hard limit, whoever writes.
package quota

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Root is where the ensemble keeps its quotas.
const Root = "/zookeeper/quota"

const (
	limitsNode = "zookeeper_limits"
	usageNode  = "zookeeper_stats"
)

// None is a limit that there is not.
const None = -1

// An Amount is of nodes, the one with the quota included, and of bytes of their data.
type Amount struct {
	Nodes int64 `json:"nodes"`
	Bytes int64 `json:"bytes"`
}

// A Quota is what may lie at and below a path, and what does, by the servers' count.
type Quota struct {
	Path string `json:"path"`
	Max  Amount `json:"max"` // None where there is no limit
	Used Amount `json:"used"`
}

// exceeded says which limit is exceeded if more is added to what there is. What adds nothing exceeds nothing.
func (q Quota) exceeded(more Amount) error {
	for _, limit := range []struct {
		name             string
		used, more, most int64
	}{{"nodes", q.Used.Nodes, more.Nodes, q.Max.Nodes}, {"bytes", q.Used.Bytes, more.Bytes, q.Max.Bytes}} {
		if limit.most != None && limit.more > 0 && limit.used+limit.more > limit.most {
			return &recipes.QuotaExceeded{Path: q.Path, Limit: limit.name, Used: limit.used, Wanted: limit.more, Max: limit.most}
		}
	}
	return nil
}

// covers says whether what happens at a node counts.
func (q Quota) covers(node string) bool { return liesIn(node, q.Path) }

func liesIn(node, directory string) bool {
	return node == directory || strings.HasPrefix(node, directory+"/")
}

// Read reads the quotas of what lies at or below the directories, or above them.
func Read(ctx context.Context, tree recipes.Tree, directories ...string) ([]Quota, error) {
	return readBelow(ctx, tree, "", directories)
}

func readBelow(ctx context.Context, tree recipes.Tree, above string, directories []string) (found []Quota, _ error) {
	names, err := tree.Children(ctx, Root+above)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	for _, name := range names {
		below := above + "/" + name
		switch {
		case name == limitsNode && above != "":
			quota, err := readOne(ctx, tree, above)
			if err != nil && !errors.Is(err, recipes.ErrNoNode) {
				return nil, err
			}
			if err == nil {
				found = append(found, quota)
			}
		case name == usageNode, !concerns(below, directories):
		default:
			deeper, err := readBelow(ctx, tree, below, directories)
			if err != nil {
				return nil, err
			}
			found = append(found, deeper...)
		}
	}
	return found, nil
}

func concerns(node string, directories []string) bool {
	for _, directory := range directories {
		if directory == "/" || liesIn(node, directory) || liesIn(directory, node) {
			return true
		}
	}
	return false
}

func ignoreMissing(err error) error {
	if errors.Is(err, recipes.ErrNoNode) {
		return nil
	}
	return err
}

// readOne reads the quota of one path. ErrNoNode if it has none.
func readOne(ctx context.Context, tree recipes.Tree, of string) (Quota, error) {
	limits, err := tree.Get(ctx, Root+of+"/"+limitsNode)
	if err != nil {
		return Quota{}, err
	}
	usage, err := tree.Get(ctx, Root+of+"/"+usageNode)
	if ignoreMissing(err) != nil {
		return Quota{}, err
	}
	told := numbersIn(limits.Data)
	most := Amount{lesser(told["count"], told["countHardLimit"]), lesser(told["bytes"], told["byteHardLimit"])}
	used := numbersIn(usage.Data)
	return Quota{Path: of, Max: most, Used: Amount{Nodes: used["count"], Bytes: used["bytes"]}}, nil
}

// numbersIn reads what StatsTrack of ZooKeeper writes: `count=1,bytes=2=;byteHardLimit=3`, with −1 for no limit. What is missing is None,
// and so is what cannot be read.
func numbersIn(data []byte) map[string]int64 {
	numbers := map[string]int64{"count": None, "bytes": None, "countHardLimit": None, "byteHardLimit": None}
	for _, pair := range strings.FieldsFunc(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		name, value, _ := strings.Cut(pair, "=")
		if number, err := strconv.ParseInt(strings.TrimSuffix(value, "="), 10, 64); err == nil && number >= 0 {
			numbers[name] = number
		}
	}
	return numbers
}

// lesser is the lesser of a soft and a hard limit.
func lesser(soft, hard int64) int64 {
	if soft == None || hard != None && hard < soft {
		return hard
	}
	return soft
}

// Errors of Set and Remove.
var (
	// ErrNested means that another quota lies at a path above or below.
	ErrNested = errors.New("quotas cannot lie in one another")
	// ErrNone means that the path has no quota.
	ErrNone = errors.New("no quota")
)

// Set gives a path a quota with these hard limits, in place of the one that it may have. The path need not be there yet. ErrNested.
func Set(ctx context.Context, store recipes.Store, of string, most Amount) error {
	if err := store.CatchUp(ctx); err != nil {
		return err
	}
	known, err := Read(ctx, store, of)
	if err != nil {
		return err
	}
	limits := fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=%d;countHardLimit=%d", most.Bytes, most.Nodes)
	if len(known) > 0 {
		if known[0].Path != of {
			return fmt.Errorf("%w: %s has one", ErrNested, known[0].Path)
		}
		_, err := store.Commit(ctx, recipes.Set(Root+of+"/"+limitsNode, limits, -1))
		return err
	}
	var changes []recipes.Change
	for directory := Root + of; directory != Root; directory = path.Dir(directory) {
		_, err := store.Get(ctx, directory)
		if ignoreMissing(err) != nil {
			return err
		}
		if err != nil {
			changes = append([]recipes.Change{recipes.Create(directory, nil)}, changes...)
		}
	}
	changes = append(changes, recipes.Create(Root+of+"/"+limitsNode, limits), recipes.Create(Root+of+"/"+usageNode, []byte("count=0,bytes=0")))
	_, err = store.Commit(ctx, changes...)
	return err
}

// Remove takes a path's quota away. ErrNone if it has none.
func Remove(ctx context.Context, store recipes.Store, of string) error {
	if err := store.CatchUp(ctx); err != nil {
		return err
	}
	_, err := store.Commit(ctx, recipes.Delete(Root+of+"/"+limitsNode, -1), recipes.Delete(Root+of+"/"+usageNode, -1))
	if errors.Is(err, recipes.ErrNoNode) {
		return ErrNone
	}
	for directory := Root + of; err == nil && directory != Root; directory = path.Dir(directory) {
		if _, err := store.Commit(ctx, recipes.Delete(directory, -1)); errors.Is(err, recipes.ErrNotEmpty) {
			return nil
		}
	}
	return err
}
