package expect

import "google.golang.org/grpc/status"

// Detail is the detail of this type that a status has.
func Detail[T any](from *status.Status) (found T, ok bool) {
	for _, each := range from.Details() {
		if found, ok = each.(T); ok {
			return found, true
		}
	}
	return found, false
}
