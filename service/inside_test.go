// It is what tests share that look inside.

package service

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/expect"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var (
	same    = expect.Same
	outcome = expect.Outcome
)

// A memoryEnsemble is an ensemble in memory, for tests that look inside.
type memoryEnsemble struct{ *standin.Reader }

func (e memoryEnsemble) Open(_ context.Context, timeout time.Duration) (Session, error) {
	return e.OpenSession(timeout), nil
}
