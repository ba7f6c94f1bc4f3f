package embedded

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// goVerbs is what a line of a go-zookeeper script can say. The arguments are those of the raw script.
var goVerbs map[string]func(s *goScript, c *goClient, arguments []string) string

func init() { //nolint:gochecknoinits // the table would refer to itself
	goVerbs = map[string]func(*goScript, *goClient, []string) string{
		"connect": func(*goScript, *goClient, []string) string { return "ok" },
		"create":  (*goScript).create, "container": (*goScript).container, "ttl": (*goScript).ttl,
		"protected": (*goScript).protected, "delete": (*goScript).delete,
		"exists": (*goScript).exists, "get": (*goScript).get, "children": (*goScript).children,
		"set": (*goScript).set, "getacl": (*goScript).getACL, "setacl": (*goScript).setACL,
		"sync": (*goScript).sync, "auth": (*goScript).auth, "multi": (*goScript).multi,
		"reconfig": (*goScript).reconfig, "join": (*goScript).join, "ruok": (*goScript).ruok,
		"await": done((*goClient).awaitWatches), "part": done((*goClient).part), "rejoin": done((*goClient).rejoin),
		"cut":   done(func(c *goClient) { c.part(); c.rejoin() }),
		"close": done((*goClient).leave),
	}
}

func done(perform func(*goClient)) func(*goScript, *goClient, []string) string {
	return func(_ *goScript, c *goClient, _ []string) string {
		perform(c)
		return "ok"
	}
}

func (s *goScript) create(c *goClient, arguments []string) string {
	r := s.createRequest(arguments, "p")
	path, err := c.Create(r.Path, r.Data, r.Flags, r.Acl)
	return s.made(path, err)
}

func (s *goScript) container(c *goClient, arguments []string) string {
	r := s.createRequest(arguments, "c")
	path, err := c.CreateContainer(r.Path, r.Data, r.Flags, r.Acl)
	return s.made(path, err)
}

func (s *goScript) ttl(c *goClient, arguments []string) string {
	r := s.createRequest(arguments, "t")
	life := time.Duration(number(argument(arguments, 4, "60000"))) * time.Millisecond
	path, err := c.CreateTTL(r.Path, r.Data, r.Flags, r.Acl, life)
	return s.made(path, err)
}

func (s *goScript) protected(c *goClient, arguments []string) string {
	r := s.createRequest(arguments, "es")
	path, err := c.CreateProtectedEphemeralSequential(r.Path, r.Data, r.Acl)
	return s.made(path, err)
}

func (s *goScript) createRequest(arguments []string, mode string) *zk.CreateRequest {
	return &zk.CreateRequest{
		Path:  s.show.full(arguments[0]),
		Data:  data(argument(arguments, 1, "-")),
		Acl:   goList(argument(arguments, 3, "open")),
		Flags: int32(modes[argument(arguments, 2, mode)]),
	}
}

func goList(text string) []zk.ACL {
	var entries []zk.ACL
	for _, entry := range list(text) {
		entries = append(entries, zk.ACL{
			Perms: entry.Permissions, Scheme: entry.Identity.Scheme, ID: entry.Identity.ID,
		})
	}
	return entries
}

// guid is what go-zookeeper makes up for a protected node.
var guid = regexp.MustCompile(`_c_[0-9a-f]{32}`)

func (s *goScript) made(path string, err error) string {
	return answer(err, guid.ReplaceAllString(s.show.path(path), "_c_GUID"))
}

// answer is an error, or what there is to show without one.
func answer(err error, shown ...string) string {
	if err != nil {
		return err.Error()
	}
	return strings.Join(shown, " ")
}

func (s *goScript) stat(stat *zk.Stat) string {
	if stat == nil {
		return "no stat"
	}
	return s.show.statOf(Stat{
		Czxid: stat.Czxid, Mzxid: stat.Mzxid, Ctime: stat.Ctime, Mtime: stat.Mtime, Version: stat.Version,
		Cversion: stat.Cversion, Aversion: stat.Aversion, Owner: stat.EphemeralOwner, DataLength: stat.DataLength,
		ChildCount: stat.NumChildren, Pzxid: stat.Pzxid,
	})
}

func (s *goScript) delete(c *goClient, arguments []string) string {
	return answer(c.Delete(s.show.full(arguments[0]), number(argument(arguments, 1, "-1"))), "ok")
}

// watched remembers a watch that a call has set.
func (c *goClient) watched(call string, arguments []string, events <-chan zk.Event) {
	if events != nil {
		c.watches = append(c.watches, goWatch{call + " " + arguments[0], events})
	}
}

func watches(arguments []string) bool { return argument(arguments, 1, "") == "watch" }

func (s *goScript) exists(c *goClient, arguments []string) string {
	path := s.show.full(arguments[0])
	if !watches(arguments) {
		there, stat, err := c.Exists(path)
		return answer(err, strconv.FormatBool(there), s.stat(stat))
	}
	there, stat, events, err := c.ExistsW(path)
	c.watched("exists", arguments, events)
	return answer(err, strconv.FormatBool(there), s.stat(stat))
}

func (s *goScript) get(c *goClient, arguments []string) string {
	path := s.show.full(arguments[0])
	if !watches(arguments) {
		data, stat, err := c.Get(path)
		return answer(err, showData(data), s.stat(stat))
	}
	data, stat, events, err := c.GetW(path)
	c.watched("get", arguments, events)
	return answer(err, showData(data), s.stat(stat))
}

func (s *goScript) children(c *goClient, arguments []string) string {
	path := s.show.full(arguments[0])
	if !watches(arguments) {
		names, stat, err := c.Children(path)
		return answer(err, sorted(names), s.stat(stat))
	}
	names, stat, events, err := c.ChildrenW(path)
	c.watched("children", arguments, events)
	return answer(err, sorted(names), s.stat(stat))
}

func sorted(names []string) string {
	slices.Sort(names)
	return guid.ReplaceAllString(fmt.Sprint(names), "_c_GUID")
}

func (s *goScript) set(c *goClient, arguments []string) string {
	stat, err := c.Set(s.show.full(arguments[0]), data(arguments[1]), number(argument(arguments, 2, "-1")))
	return answer(err, s.stat(stat))
}

func (s *goScript) getACL(c *goClient, arguments []string) string {
	entries, stat, err := c.GetACL(s.show.full(arguments[0]))
	return answer(err, fmt.Sprint(entries), s.stat(stat))
}

func (s *goScript) setACL(c *goClient, arguments []string) string {
	stat, err := c.SetACL(s.show.full(arguments[0]), goList(arguments[1]), number(argument(arguments, 2, "-1")))
	return answer(err, s.stat(stat))
}

func (s *goScript) sync(c *goClient, arguments []string) string {
	path, err := c.Sync(s.show.full(arguments[0]))
	return answer(err, s.show.path(path))
}

func (s *goScript) auth(c *goClient, arguments []string) string {
	err := c.AddAuth(arguments[0], []byte(arguments[1]))
	if errors.Is(err, zk.ErrAuthFailed) { // then the server hangs up, and the client comes back
		c.await(zk.StateDisconnected)
		c.attach()
	}
	return answer(err, "ok")
}

func (s *goScript) reconfig(c *goClient, _ []string) string {
	stat, err := c.Reconfig(nil, -1)
	return answer(err, s.stat(stat))
}

func (s *goScript) join(c *goClient, arguments []string) string {
	stat, err := c.IncrementalReconfig(arguments, nil, -1)
	return answer(err, s.stat(stat))
}

// ruok asks the one four-letter word whose answer go-zookeeper can read from ZooKeeper 3.9.5: it looks for dates and
// connections as older servers wrote them in those to "srvr" and "cons".
func (s *goScript) ruok(*goClient, []string) string {
	return fmt.Sprint(zk.FLWRuok([]string{s.address}, patience))
}
