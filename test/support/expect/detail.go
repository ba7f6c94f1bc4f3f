package expect

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// Detail is the detail of this type that a status has.
func Detail[T any](from *status.Status) (found T, ok bool) {
	for _, each := range from.Details() {
		if found, ok = each.(T); ok {
			return found, true
		}
	}
	return found, false
}

// Details are what an error tells a program: facts, and after how long to try again.
func Details(err error) (facts map[string]string, retry time.Duration) {
	told := status.Convert(err)
	info, _ := Detail[*errdetails.ErrorInfo](told)
	after, _ := Detail[*errdetails.RetryInfo](told)
	return info.GetMetadata(), after.GetRetryDelay().AsDuration()
}
