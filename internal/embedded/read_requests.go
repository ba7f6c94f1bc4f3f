package embedded

import "strings"

// readable finds a node that the client may use in one of these ways.
func (c *connection) readable(path string, permission int32) (*node, error) {
	n, err := c.server.ensemble.tree.Find(path)
	if err != nil {
		return nil, err
	}
	return n, permitted(n.acl, permission, c.identities)
}

// reading handles a read that has a path and a watch flag. The watch is one of the node or of its list of children.
func reading(list bool, answer func(*encoder, *node)) handler {
	return func(c *connection, in *decoder, out *encoder) error {
		path, watch := in.Text(), in.Bool()
		if in.Failed() {
			return codeMarshalling
		}
		n, err := c.readable(path, permRead)
		if err != nil {
			return err
		}
		if watch {
			c.server.ensemble.watches(list).add(path, c, watchOnce)
		}
		answer(out, n)
		return nil
	}
}

func answerData(out *encoder, n *node) {
	out.bytes(n.data)
	out.stat(n.Describe())
}

func answerNames(out *encoder, n *node) { out.strings(n.Names()) }

func answerNamesAndStat(out *encoder, n *node) {
	out.strings(n.Names())
	out.stat(n.Describe())
}

func handleExists(c *connection, in *decoder, out *encoder) error {
	path, watch := in.Text(), in.Bool()
	if in.Failed() {
		return codeMarshalling
	}
	if strings.IndexByte(path, 0) >= 0 {
		return codeBadArguments
	}
	n, err := c.readable(path, permRead)
	if watch && (err == nil || codeOf(err) == codeNoNode) {
		c.server.ensemble.nodeWatches.add(path, c, watchOnce)
	}
	if err == nil {
		out.stat(n.Describe())
	}
	return err
}

func handleGetACL(c *connection, in *decoder, out *encoder) error {
	path := in.Text()
	if in.Failed() {
		return codeMarshalling
	}
	n, err := c.readable(path, permRead|permAdmin)
	if err != nil {
		return err
	}
	list := n.acl
	if permitted(list, permAdmin, c.identities) != nil {
		list = mask(list)
	}
	out.acl(list)
	out.stat(n.Describe())
	return nil
}

func handleGetAllChildrenNumber(c *connection, in *decoder, out *encoder) error {
	path := in.Text()
	if in.Failed() {
		return codeMarshalling
	}
	if _, err := c.readable(path, permRead); err != nil {
		return err
	}
	out.int32(c.server.ensemble.tree.countBelow(path))
	return nil
}

// countBelow is how many nodes lie below path.
func (t *tree) countBelow(path string) int32 {
	prefix := strings.TrimSuffix(path, "/") + "/"
	count := int32(0)
	for other := range t.nodes {
		if strings.HasPrefix(other, prefix) {
			count++
		}
	}
	return count
}

func handleGetEphemerals(c *connection, in *decoder, out *encoder) error {
	prefix := in.Optional()
	if in.Failed() {
		return codeMarshalling
	}
	if trimmed := strings.TrimFunc(prefix, func(r rune) bool { return r <= ' ' }); trimmed == "/" || trimmed == "" {
		prefix = "" // everything
	}
	var paths []string
	for _, path := range c.server.ensemble.ephemeralsOf(c.session.id) {
		if strings.HasPrefix(path, prefix) {
			paths = append(paths, path)
		}
	}
	out.strings(paths)
	return nil
}

func handleSync(_ *connection, in *decoder, out *encoder) error {
	path := in.bytes() // of any kind: nothing depends on it
	if in.Failed() {
		return codeMarshalling
	}
	if path != nil {
		path = []byte(string([]rune(string(path)))) // as Java reads and writes what is not UTF-8
	}
	out.bytes(path)
	return nil
}

func handleWhoAmI(c *connection, _ *decoder, out *encoder) error {
	out.int32(int32(len(c.identities)))
	for _, identity := range c.identities {
		user := identity.ID
		if identity.Scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		out.string(identity.Scheme)
		out.string(user)
	}
	return nil
}
