package embedded

import "fmt"

// errWithReply refuses a request that is answered in full nevertheless.
var errWithReply = fmt.Errorf("%w, but in part", codeMarshalling)

// handleMulti does all of several operations, or none. If one fails, the reply says so for each of them: nothing for
// those before it, its code for itself, "inconsistent" for those after it.
func handleMulti(c *connection, in *decoder, out *encoder) error {
	steps, err := readSteps(in)
	if err != nil {
		c.server.ensemble.zxid++ // ZooKeeper has taken a number by now
		return err
	}
	results := &encoder{}
	failed := 0
	err = c.write(func(t *transaction) error {
		for i, step := range steps {
			results.done(step.op)
			if err := step.do(t, results); err != nil {
				failed = i
				return err
			}
		}
		return nil
	})
	if codeOf(err) == codeMarshalling {
		return err
	}
	if err != nil {
		results = refusals(len(steps), failed, codeOf(err))
	}
	out.buffer = append(out.buffer, results.buffer...)
	out.endOfMulti()
	return nil
}

// refusals writes the results of a multi whose step number failed has failed.
func refusals(count, failed int, code Code) *encoder {
	out := &encoder{}
	for i := range count {
		switch {
		case i < failed:
			out.refused(codeOK)
		case i == failed:
			out.refused(code)
		default:
			out.refused(codeRuntimeInconsist)
		}
	}
	return out
}

// readSteps reads the operations of a multi, up to the mark that there are no more.
func readSteps(in *decoder) ([]step, error) {
	var steps []step
	for {
		op, done, _ := opcode(in.Int32()), in.Bool(), in.Int32()
		if in.Failed() || done {
			return steps, in.err()
		}
		next, err := readStep(op, in)
		if err != nil {
			return nil, err
		}
		steps = append(steps, next)
	}
}

func readStep(op opcode, in *decoder) (step, error) {
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		return readCreateOfMulti(op, in)
	case opDelete:
		return readDelete(in)
	case opCheck:
		return versionStep(op, in, (*transaction).Check)
	case opSetData:
		return readSetData(in)
	}
	return step{}, codeMarshalling
}

// readCreateOfMulti reads a step that makes a node. In a multi, other than alone, a create with the mode of a container makes
// one, a mode that is none cannot be read, and a create with a time to live and another mode is a plain one.
func readCreateOfMulti(op opcode, in *decoder) (step, error) {
	wanted, err := readCreation(in, Mode.kind, op == opCreateTTL)
	switch {
	case op == opCreateTTL && wanted.mode.expiring():
		wanted.kind = expiring
	case op == opCreateTTL:
		op, wanted.ttl = opCreate, -1
	case wanted.mode.expiring() || !wanted.mode.known():
		err = codeMarshalling
	}
	if op == opCreateContainer || wanted.mode == Container {
		op, wanted.kind = opCreateContainer, container
	}
	if op != opCreate {
		op = opCreate2
	}
	return createStep(op, wanted), err
}

// handleMultiRead does several reads, each with a result of its own. They set no watches. Writes in their place are
// answered with an empty list of results beside the error; writes among them with the error alone.
func handleMultiRead(c *connection, in *decoder, out *encoder) error {
	ahead := *in
	if steps, err := readSteps(&ahead); err == nil && len(steps) > 0 {
		out.endOfMulti()
		return errWithReply
	}
	for {
		op, done, _ := opcode(in.Int32()), in.Bool(), in.Int32()
		if in.Failed() || !done && op != opGetData && op != opGetChildren {
			return codeMarshalling
		}
		if done {
			out.endOfMulti()
			return nil
		}
		if err := c.readOne(op, in, out); err != nil {
			return err
		}
	}
}

// readOne does one of several reads.
func (c *connection) readOne(op opcode, in *decoder, out *encoder) error {
	path, _ := in.Text(), in.Bool()
	if in.Failed() {
		return codeMarshalling
	}
	n, err := c.readable(path, permRead)
	if err != nil {
		out.refused(codeOf(err))
		return nil
	}
	out.done(op)
	if op == opGetChildren {
		answerNames(out, n)
	} else {
		answerData(out, n)
	}
	return nil
}

// done begins the result of an operation that was done.
func (e *encoder) done(op opcode) {
	e.int32(int32(op))
	e.bool(false)
	e.int32(0)
}

// refused is the result of an operation that was not.
func (e *encoder) refused(code Code) {
	e.int32(int32(opError))
	e.bool(false)
	e.int32(int32(code))
	e.int32(int32(code))
}

func (e *encoder) endOfMulti() {
	e.int32(-1)
	e.bool(true)
	e.int32(-1)
}
