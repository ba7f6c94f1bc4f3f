package caller

import "context"

// An Admission is a call that was let in. It ends once.
type Admission interface {
	Context() context.Context
	End(err error) (told error) // of what its handler has returned
}

// An Admitter lets calls in that come inside of another one's stream. One that goes on was let in by an earlier process, and costs nothing
// again. A call that is not let in has ended, and its caller is told the error.
type Admitter interface {
	Begin(ctx context.Context, method string, request any, goesOn bool) (Admission, error)
}

type admitterKey struct{}

// WithAdmitter is the context of a stream that calls may come inside of.
func WithAdmitter(ctx context.Context, admitter Admitter) context.Context {
	return context.WithValue(ctx, admitterKey{}, admitter)
}

// AdmitterOf is that of a stream; where nothing stands before the handlers, as in tests, it lets all calls in.
func AdmitterOf(ctx context.Context) Admitter {
	if admitter, ok := ctx.Value(admitterKey{}).(Admitter); ok {
		return admitter
	}
	return lettingIn{}
}

type lettingIn struct{}

func (lettingIn) Begin(ctx context.Context, _ string, _ any, _ bool) (Admission, error) {
	return letIn{ctx}, nil
}

type letIn struct {
	ctx context.Context //nolint:containedctx // what it is there for
}

func (l letIn) Context() context.Context { return l.ctx }
func (letIn) End(err error) error        { return err }
