package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
)

// A kind is a lock recipe of one client library.
type kind struct{ library, recipe string }

func (k kind) String() string { return k.library + " " + k.recipe }

var (
	curatorMutex   = kind{"curator", "mutex"}
	curatorWrite   = kind{"curator", "write"}
	kazooStock     = kind{"kazoo", "stock"}
	kazooPatterns  = kind{"kazoo", "patterns"} // its documented option for places of other libraries
	kazooSubclass  = kind{"kazoo", "subclass"} // its recipe with places named as the others name theirs
	sidecarMutex   = kind{"sidekeeper", "mutex"}
	sidecarWrite   = kind{"sidekeeper", "write"}
	kindsOfLibrary = map[string][]kind{
		"curator": {curatorMutex}, "kazoo": {kazooStock, kazooPatterns, kazooSubclass}, "sidekeeper": {sidecarMutex},
	}
)

const (
	rounds      = 40
	contenders  = 3
	lockRoot    = "/sidekeeper/locks/"
	waitAtMost  = 60_000 // ms, for what must be held
	waitAtLeast = 250    // ms, before somebody counts as waiting
)

func TestContendersOfOneLibraryExcludeEachOther(t *testing.T) {
	onBoth(t, func(t *testing.T, servers string) {
		for _, one := range []struct {
			kind kind
			peer peer
		}{
			{kazooStock, startKazoo(t, servers)},
			{curatorMutex, startCurator(t, servers)},
		} {
			t.Run(one.kind.String(), func(t *testing.T) {
				contend(t, map[string]peer{one.kind.library: one.peer}, one.kind)
			})
		}
	})
}

func TestContendersOfAllLibrariesExcludeEachOther(t *testing.T) {
	sidecar, servers := startSidecar(t)
	peers := map[string]peer{
		"sidekeeper": newCaller(sidecar.Client()),
		"curator":    startCurator(t, servers),
		"kazoo":      startKazoo(t, servers),
	}
	t.Run("mutexes", func(t *testing.T) { contend(t, peers, curatorMutex, kazooSubclass, sidecarMutex) })
	t.Run("writers", func(t *testing.T) { contend(t, peers, curatorWrite, sidecarWrite) })
}

// contend has contenders of each kind count under one lock: nobody is alone with it who should not be, and no count is lost.
func contend(t *testing.T, peers map[string]peer, kinds ...kind) {
	t.Helper()
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "counter"), []byte("0"), 0o600))
	path := lockRoot + filepath.Base(filepath.Dir(folder))
	for _, kind := range kinds {
		expect(t, peers[kind.library], "gathered", "gather", kind.recipe, path, contenders)
	}
	var group errgroup.Group
	for _, kind := range kinds {
		group.Go(func() error {
			if answer := peers[kind.library].tell(t, "contend", rounds, folder); answer != "counted" {
				return fmt.Errorf("%s: %s", kind, answer)
			}
			return nil
		})
	}
	must(t, group.Wait())
	got, err := counted(folder)
	must(t, err)
	if want := len(kinds) * contenders * rounds; got != want {
		t.Errorf("%d counted, want %d: some did not see what others had written", got, want)
	}
}

// overtaken are the pairs in which who comes later is granted the lock though it is held, since it does not know the
// holder's place for one. Only they could change that, and it is why kazoo's recipe is to be used with Curator's names.
var overtaken = map[[2]kind]bool{
	// kazoo looks for places with names like its own alone, unless it is told of others.
	{curatorMutex, kazooStock}:  true,
	{sidecarMutex, kazooStock}:  true,
	{kazooSubclass, kazooStock}: true,
	// Who looks for Curator's names does not find kazoo's. Sidekeeper looks for both.
	{kazooStock, curatorMutex}:     true,
	{kazooStock, kazooSubclass}:    true,
	{kazooPatterns, curatorMutex}:  true,
	{kazooPatterns, kazooSubclass}: true,
}

// Who waits for whom must not depend on which ensemble it is.
func TestALatecomerWaitsForTheHolder(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		servers := startReal(t)
		tryEveryPair(t, map[string]peer{"curator": startCurator(t, servers), "kazoo": startKazoo(t, servers)})
	})
	t.Run("embedded", func(t *testing.T) {
		sidecar, servers := startSidecar(t)
		tryEveryPair(t, map[string]peer{
			"curator": startCurator(t, servers), "kazoo": startKazoo(t, servers), "sidekeeper": newCaller(sidecar.Client()),
		})
	})
}

func tryEveryPair(t *testing.T, peers map[string]peer) {
	t.Helper()
	var kinds []kind
	for library := range peers {
		kinds = append(kinds, kindsOfLibrary[library]...)
	}
	for i, holder := range kinds {
		for j, latecomer := range kinds {
			path := fmt.Sprintf("%spair-%d-%d", lockRoot, i, j)
			t.Run(fmt.Sprintf("%s before %s", holder, latecomer), func(t *testing.T) {
				try(t, path, pairing{holder, peers[holder.library]}, pairing{latecomer, peers[latecomer.library]})
			})
		}
	}
}

type pairing struct {
	kind kind
	peer peer
}

func try(t *testing.T, path string, holder, latecomer pairing) {
	t.Helper()
	first, second := filepath.Base(path)+"-first", filepath.Base(path)+"-second"
	expect(t, holder.peer, "made", "make", first, holder.kind.recipe, path)
	expect(t, latecomer.peer, "made", "make", second, latecomer.kind.recipe, path)
	expect(t, holder.peer, "held", "acquire", first, waitAtMost)
	if overtaken[[2]kind{holder.kind, latecomer.kind}] {
		expect(t, latecomer.peer, "held", "acquire", second, waitAtMost)
	} else {
		expect(t, latecomer.peer, "waits", "acquire", second, waitAtLeast)
	}
	expect(t, holder.peer, "released", "release", first)
	if !overtaken[[2]kind{holder.kind, latecomer.kind}] {
		expect(t, latecomer.peer, "held", "acquire", second, waitAtMost)
	}
	expect(t, latecomer.peer, "released", "release", second)
}
