package embedded

// readCreation reads the request of every sort of create.
func readCreation(in *decoder, made func(Mode) kind, ttl bool) (creation, error) {
	c := creation{path: in.path(), data: in.bytes(), acl: in.acl(), mode: Mode(in.Int32()), ttl: -1}
	if ttl {
		c.ttl = in.Int64()
	}
	c.kind = made(c.mode)
	return c, in.err()
}

func always(k kind) func(Mode) kind { return func(Mode) kind { return k } }

func readCreate(in *decoder) (creation, error)    { return readCreation(in, Mode.kind, false) }
func readContainer(in *decoder) (creation, error) { return readCreation(in, always(container), false) }

func readTTL(in *decoder) (creation, error) { return readCreation(in, always(expiring), true) }

func handleCreate(c *connection, in *decoder, out *encoder) error {
	return c.create(in, readCreate, func(path string, _ *node) { out.string(path) })
}

func handleCreate2(c *connection, in *decoder, out *encoder) error {
	return c.create(in, readCreate, out.created)
}

func handleCreateContainer(c *connection, in *decoder, out *encoder) error {
	return c.create(in, readContainer, out.created)
}

func handleCreateTTL(c *connection, in *decoder, out *encoder) error {
	return c.create(in, readTTL, out.created)
}

// created writes the longer reply to a create.
func (e *encoder) created(path string, n *node) {
	e.string(path)
	e.stat(n.Describe())
}

func (c *connection) create(in *decoder, read func(*decoder) (creation, error), reply func(string, *node)) error {
	wanted, err := read(in)
	if err != nil {
		return err
	}
	return c.write(func(t *transaction) error {
		path, made, err := t.create(wanted)
		if err == nil {
			reply(path, made)
		}
		return err
	})
}

// write does a transaction in the client's name.
func (c *connection) write(change func(*transaction) error) error {
	return c.server.ensemble.write(c.caller(), change)
}

func handleDelete(c *connection, in *decoder, _ *encoder) error {
	path, version := in.path(), in.Int32()
	if in.Failed() {
		return codeMarshalling
	}
	return c.write(func(t *transaction) error { return t.Delete(path, version) })
}

func handleDeleteContainer(c *connection, in *decoder, _ *encoder) error {
	path := in.Text()
	if in.Failed() {
		return codeMarshalling
	}
	return c.write(func(t *transaction) error { return t.deleteContainer(path) })
}

func handleSetData(c *connection, in *decoder, out *encoder) error {
	path, data, version := in.path(), in.bytes(), in.Int32()
	if in.Failed() {
		return codeMarshalling
	}
	return c.write(func(t *transaction) error {
		n, err := t.Set(path, data, version)
		if err == nil {
			out.stat(n.Describe())
		}
		return err
	})
}

func handleSetACL(c *connection, in *decoder, out *encoder) error {
	path, list, version := in.path(), in.acl(), in.Int32()
	if in.Failed() {
		return codeMarshalling
	}
	return c.write(func(t *transaction) error {
		n, err := t.setACL(path, list, version)
		if err == nil {
			out.stat(n.Describe())
		}
		return err
	})
}

// handleReconfig refuses, as a server does by default. Its configuration is to be read at /zookeeper/config.
func handleReconfig(c *connection, in *decoder, _ *encoder) error {
	for range 3 {
		in.Optional() // who shall join, who leave, who be there
	}
	in.Int64() // the version of the configuration to be changed
	if in.Failed() {
		return codeMarshalling
	}
	return c.write(func(*transaction) error { return codeReconfigDisabled })
}
