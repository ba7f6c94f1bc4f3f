// Package fence keeps late writes out of what a lock protects. A program that was frozen while it held a lock goes on where it stood, and
// writes after the next holder. Nothing that it does itself prevents that. So the holder of a lock sends its tickets along. What is
// written to refuses a ticket that is older than one that it has seen.
//
// The caller's half sends the tickets of the locks that are held around a call, as Client.WithLock does with its function's context:
// UnaryClientInterceptor and StreamClientInterceptor for gRPC, Transport for HTTP. The other half is a Gate, in the service that guards
// something: its interceptors or its Handler refuse stale calls, by a mark in a Store that survives restarts. Where the effect is a
// transaction in a database, Enter compares the token in that transaction, which is better: a gate looks when a call arrives, and the
// effect comes later.
//
// What is said of headers, answers and marks here is the same for the clients of all languages.
package fence

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Header has the tickets of a call, in gRPC's metadata and in HTTP: `orders=61, stock/eu=7`.
const Header = "sidekeeper-fence"

// mostTickets is how many tickets a call may have, as many as a write has guards.
const mostTickets = 16

var oneTicket = regexp.MustCompile(`^([A-Za-z0-9._/-]{1,200})=([1-9][0-9]{0,18})$`)

// Format writes tickets as a header has them.
func Format(tickets []sidekeeper.Ticket) string {
	written := make([]string, len(tickets))
	for i, ticket := range tickets {
		written[i] = fmt.Sprintf("%s=%d", ticket.Lock, ticket.FencingToken)
	}
	return strings.Join(written, ", ")
}

// Parse reads the tickets of all headers of a call. Its error is a Refusal.
func Parse(values []string) (tickets []sidekeeper.Ticket, err error) {
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			if element = strings.Trim(element, " \t"); element == "" {
				continue
			}
			ticket, err := parseTicket(element)
			if err == nil {
				tickets, err = add(tickets, ticket)
			}
			if err != nil {
				return nil, &Refusal{Reason: Malformed, message: Header + ": " + err.Error()}
			}
		}
	}
	return tickets, nil
}

func parseTicket(element string) (ticket sidekeeper.Ticket, err error) {
	parts := oneTicket.FindStringSubmatch(element)
	if parts == nil {
		return ticket, errNoTicket
	}
	token, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return ticket, errNoTicket
	}
	return sidekeeper.Ticket{Lock: parts[1], FencingToken: token}, nil
}

var errNoTicket = errors.New("not lock=token")

func add(tickets []sidekeeper.Ticket, ticket sidekeeper.Ticket) ([]sidekeeper.Ticket, error) {
	switch {
	case slices.Contains(tickets, ticket):
		return tickets, nil
	case slices.ContainsFunc(tickets, func(of sidekeeper.Ticket) bool { return of.Lock == ticket.Lock }):
		return nil, fmt.Errorf("two tokens of lock %s", ticket.Lock)
	case len(tickets) == mostTickets:
		return nil, fmt.Errorf("more than %d tickets", mostTickets)
	}
	return append(tickets, ticket), nil
}
