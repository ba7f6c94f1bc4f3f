// It is what tests from outside are given of what is inside.

package server

import (
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
)

// CompleteWithin is how long a request may take to come.
func CompleteWithin(options *Options, within time.Duration) { options.completeWithin = within }

// Lookers is how many look at the page.
func Lookers(server *Server) int { return len(server.admin.lookers) }

// OpenStreams is how many streams a new policy judges.
func OpenStreams(server *Server) int {
	server.streams.mu.Lock()
	defer server.streams.mu.Unlock()
	return len(server.streams.open)
}

// KnownMethods are those of which a policy knows what they are about.
func KnownMethods() []string { return methods.All() }

// MethodsOf are those that a sidecar serves, less those that need no rule.
func MethodsOf(server *Server) (names []string) {
	for of, info := range server.grpc[0].GetServiceInfo() {
		for _, method := range info.Methods {
			if full := "/" + of + "/" + method.Name; !isOpen(full) {
				names = append(names, full)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Judged is what the policy says of a call without a name.
func Judged(server *Server, identity, method string) error {
	return authorizer{policy: server.policy}.judge(questionOf(caller.Caller{Identity: identity}, method, nil))
}
