package sidekeeper

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestPausesOfAHandlerGrowUntilARunHasLasted(t *testing.T) {
	var again breather
	var pauses []time.Duration
	for _, lasted := range []time.Duration{0, 0, 59 * time.Second, 0, 0, 0, 0, 0, time.Minute, 0} {
		pauses = append(pauses, again.after(lasted)/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1, 2}; !slices.Equal(pauses, want) {
		t.Errorf("%d, not %d seconds", pauses, want)
	}
}

func TestShareJoinsAnewUnlessThatIsInVain(t *testing.T) {
	for want, all := range map[bool][]error{
		true: {
			errors.New("the lease is another client's"), errClosed, &Error{Code: codes.Unimplemented}, &Error{Code: codes.PermissionDenied},
			&Error{Code: codes.NotFound, Reason: ErrAssignmentNotFound.Error()}, &Error{Code: codes.InvalidArgument},
		},
		false: {
			outlived(), ended(ErrMemberRemoved.Error(), "by hand"), &Error{Code: codes.NotFound, Reason: ErrLeaseNotFound.Error()},
			&Error{Code: codes.Unavailable}, &Error{Code: codes.Internal}, &Error{Code: codes.ResourceExhausted},
		},
	} {
		for _, err := range all {
			if got := isFinal(fmt.Errorf("member: %w", err)); got != want {
				t.Errorf("%v: final %t", err, got)
			}
		}
	}
}
