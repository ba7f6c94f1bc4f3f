package caller

import (
	"errors"
	"testing"
)

// Two policies that come one after the other may both find a request on a stream that goes on asking.
func TestAPermissionIsWithdrawnOnce(t *testing.T) {
	permission, first := NewPermission(), errors.New("first")
	permission.Withdraw(first)
	permission.Withdraw(errors.New("second"))
	<-permission.Withdrawn()
	same(t, "why", permission.Why(), first)
}
