package embedded

// settingWatches handles setWatches, which the later of two operations has for watches that stay as well.
func settingWatches(persistent bool) handler {
	return func(c *connection, in *decoder, _ *encoder) error { return c.setWatches(in, persistent) }
}

// setWatches sets the watches that a client had on an earlier connection, and fires those whose change it missed: it
// has seen everything up to the zxid it names.
func (c *connection) setWatches(in *decoder, persistent bool) error {
	seen, data, exist, list := in.Int64(), in.Texts(), in.Texts(), in.Texts()
	var staying, recursive []string
	if persistent {
		staying, recursive = in.Texts(), in.Texts()
	}
	if in.Failed() {
		return codeMarshalling
	}
	e := c.server.ensemble
	for _, path := range data {
		c.resume(e.nodeWatches, path, eventDataChanged, func(n *node) bool { return n.stat.mzxid > seen })
	}
	for _, path := range exist {
		if _, err := e.tree.Find(path); err == nil {
			c.Notify(event{kind: eventCreated, path: path, zxid: -1})
		} else {
			e.nodeWatches.add(path, c, watchOnce)
		}
	}
	for _, path := range list {
		c.resume(e.childWatches, path, eventChildrenChanged, func(n *node) bool { return n.stat.pzxid > seen })
	}
	for _, path := range staying {
		e.addPersistent(path, c)
	}
	for _, path := range recursive {
		e.nodeWatches.add(path, c, watchRecursive)
	}
	return nil
}

// resume sets a watch of a node that was there, or tells that it has changed or gone.
func (c *connection) resume(table *watchTable, path string, kind eventType, changed func(*node) bool) {
	n, err := c.server.ensemble.tree.Find(path)
	switch {
	case err != nil:
		c.Notify(event{kind: eventDeleted, path: path, zxid: -1})
	case changed(n):
		c.Notify(event{kind: kind, path: path, zxid: -1})
	default:
		table.add(path, c, watchOnce)
	}
}

func (e *Ensemble) addPersistent(path string, w watcher) {
	e.nodeWatches.add(path, w, watchPersistent)
	e.childWatches.add(path, w, watchPersistent)
}

func handleAddWatch(c *connection, in *decoder, out *encoder) error {
	path, mode := in.Optional(), in.Int32()
	if in.Failed() {
		return codeMarshalling
	}
	switch mode {
	case 0:
		c.server.ensemble.addPersistent(path, c)
	case 1:
		c.server.ensemble.nodeWatches.add(path, c, watchRecursive)
	default:
		return codeMarshalling
	}
	out.int32(0)
	return nil
}

// A watchChoice says which watches a request speaks of.
type watchChoice struct{ nodes, lists watchMode }

const anyMode = watchOnce | watchPersistent | watchRecursive

// watchChoices has the numbers of the wire protocol.
var watchChoices = map[int32]watchChoice{
	1: {lists: watchOnce},
	2: {nodes: watchOnce},
	3: {nodes: anyMode, lists: anyMode},
	4: {nodes: watchPersistent, lists: watchPersistent},
	5: {nodes: watchRecursive},
}

func readWatchChoice(in *decoder) (string, watchChoice, error) {
	path := in.Optional()
	choice, known := watchChoices[in.Int32()]
	if in.Failed() || !known {
		return "", choice, codeMarshalling
	}
	return path, choice, nil
}

func handleCheckWatches(c *connection, in *decoder, _ *encoder) error {
	path, choice, err := readWatchChoice(in)
	if err != nil {
		return err
	}
	e := c.server.ensemble
	if choice.nodes == watchPersistent { // a persistent watch is in both tables; ZooKeeper looks into this one
		choice.lists = 0
	}
	if e.nodeWatches.holds(path, c, choice.nodes) || e.childWatches.holds(path, c, choice.lists) {
		return nil
	}
	return codeNoWatcher
}

func handleRemoveWatches(c *connection, in *decoder, _ *encoder) error {
	path, choice, err := readWatchChoice(in)
	if err != nil {
		return err
	}
	e := c.server.ensemble
	list := e.childWatches.remove(path, c, choice.lists)
	if node := e.nodeWatches.remove(path, c, choice.nodes); node || list {
		return nil
	}
	return codeNoWatcher
}
