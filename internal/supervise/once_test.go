package supervise

import (
	"context"
	"errors"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestASuccessThatIsNotRecordedHasAnExitCodeOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, why := range []error{sidekeeper.ErrLockHeld, sidekeeper.ErrSuperseded, context.DeadlineExceeded, errors.New("unknown")} {
		if code := exit.Code((&Runner{}).outcome(nil, nil, &unrecorded{why})); code != exit.Lost {
			t.Errorf("%v: exit code %d", why, code)
		}
	}
}
