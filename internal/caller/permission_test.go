package caller

import (
	"errors"
	"testing"
)

// Two policies that come one after the other may both find a request on a stream that goes on asking.
func TestAPermissionIsWithdrawnOnce(t *testing.T) {
	first := errors.New("first")
	var early, late Permission
	var told []error
	early.Ends(func(cause error) { told = append(told, cause) })
	for _, permission := range []*Permission{&early, &late} {
		permission.Withdraw(first)
		permission.Withdraw(errors.New("second"))
	}
	late.Ends(func(cause error) { told = append(told, cause) })
	same(t, "reasons", told, []error{first, first})
	(*Permission)(nil).Ends(func(error) { t.Error("a stream ended that needs no permission") })
}
