package embedded

// A step is one operation that changes the tree, alone or in a multi: it writes its result or fails.
type step struct {
	op opcode // as the results of a multi name it
	do func(t *transaction, out *encoder) error
}

// alone handles an operation that is a request of its own.
func alone(read func(*decoder) (step, error)) handler {
	return func(c *connection, in *decoder, out *encoder) error {
		step, err := read(in)
		if err != nil {
			return err
		}
		return c.write(func(t *transaction) error { return step.do(t, out) })
	}
}

// write does a transaction in the client's name.
func (c *connection) write(change func(*transaction) error) error {
	return c.server.ensemble.write(c.caller(), change)
}

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

// creating handles a create that is a request of its own, and makes what the mode says or its operation is for.
func creating(op opcode, made func(Mode) kind) handler {
	return alone(func(in *decoder) (step, error) {
		wanted, err := readCreation(in, made, op == opCreateTTL)
		return createStep(op, wanted), err
	})
}

// createStep is a step that makes a node: its result is the path, and the Stat unless the operation is the oldest.
func createStep(op opcode, wanted creation) step {
	return step{op, func(t *transaction, out *encoder) error {
		path, made, err := t.create(wanted)
		if err != nil {
			return err
		}
		out.string(path)
		if op != opCreate {
			out.stat(made.Describe())
		}
		return nil
	}}
}

func readDelete(in *decoder) (step, error) { return versionStep(opDelete, in, (*transaction).Delete) }

// versionStep is a step that has a path and a version and no result.
func versionStep(op opcode, in *decoder, do func(*transaction, string, int32) error) (step, error) {
	path, version := in.path(), in.Int32()
	return step{op, func(t *transaction, _ *encoder) error { return do(t, path, version) }}, in.err()
}

func readDeleteContainer(in *decoder) (step, error) {
	path := in.Text()
	return step{opDeleteContainer, func(t *transaction, _ *encoder) error { return t.deleteContainer(path) }}, in.err()
}

func readSetData(in *decoder) (step, error) {
	path, data, version := in.path(), in.bytes(), in.Int32()
	return statStep(opSetData, func(t *transaction) (*node, error) { return t.Set(path, data, version) }), in.err()
}

func readSetACL(in *decoder) (step, error) {
	path, list, version := in.path(), in.acl(), in.Int32()
	return statStep(opSetACL, func(t *transaction) (*node, error) { return t.setACL(path, list, version) }), in.err()
}

// statStep is a step whose result is the Stat of the node that it has changed.
func statStep(op opcode, change func(*transaction) (*node, error)) step {
	return step{op, func(t *transaction, out *encoder) error {
		n, err := change(t)
		if err == nil {
			out.stat(n.Describe())
		}
		return err
	}}
}

// readReconfig refuses, as a server does by default. Its configuration is to be read at /zookeeper/config.
func readReconfig(in *decoder) (step, error) {
	for range 3 {
		in.Optional() // who shall join, who leave, who be there
	}
	in.Int64() // the version of the configuration to be changed
	return step{opReconfig, func(*transaction, *encoder) error { return codeReconfigDisabled }}, in.err()
}
