package traces

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// The ensemble's times have no parts of milliseconds.
func TestStepsAndTransactionsAreInOneOrder(t *testing.T) {
	at := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	transaction := func(zxid, session int64, ms float64, change txnlog.Change) txnlog.Transaction {
		return txnlog.Transaction{Zxid: zxid, Session: session, Time: time.Unix(0, int64(at(ms))), Changes: []txnlog.Change{change}}
	}
	const other, claim = "/locks/stock/_c_3-lock-2", "/locks/stock/_c_4-claim-lock-3"
	log := &txnlog.Log{Transactions: []txnlog.Transaction{
		transaction(1, 1, 1, txnlog.Change{Kind: txnlog.BeginSession, Timeout: time.Second}),
		transaction(2, 9, 1, txnlog.Change{Kind: txnlog.BeginSession, Timeout: time.Second}), // nobody's of ours
		transaction(3, 1, 2, txnlog.Change{Kind: txnlog.Create, Path: first, Owned: true}),
		transaction(4, 1, 2, txnlog.Change{Kind: txnlog.Create, Path: "/groups/web", Owned: true}),
		transaction(5, 1, 4, txnlog.Change{Kind: txnlog.Delete, Path: first}),
		transaction(6, 1, 6, txnlog.Change{Kind: txnlog.Create, Path: other, Owned: true}),
		transaction(7, 9, 7, txnlog.Change{Kind: txnlog.Create, Path: claim}), // which belongs to no session
		transaction(8, 1, 9, txnlog.Change{Kind: txnlog.EndSession, Paths: []string{other}}),
		transaction(9, 1, 9, txnlog.Change{Kind: txnlog.Delete, Path: claim}),
	}}
	sidecar := []Line{
		{At: at(1.5), Kind: trace.Opened, Session: 1, Clock: at(101.5)},
		{At: at(2.5), Kind: trace.Asked, Session: 1, Place: "/locks/orders/_c_1-lock-"},
		{At: at(2.6), Kind: trace.Made, Session: 1, Place: first},
		{At: at(2.7), Kind: trace.Left, Session: 1, Place: "/groups/web"},
		{At: at(4), Kind: trace.Leaving, Session: 1, Place: first},
		{At: at(4.9), Kind: trace.Left, Session: 1, Place: first},
		{At: at(7.5), Kind: trace.Asked, Session: 1, Place: "/locks/stock/_c_3-lock-"}, // later than it was carried out
		{At: at(8), Kind: trace.Promised, Session: 1, Token: 6},
	}
	var got []string
	for _, line := range Real(log, [][]Line{sidecar}, "/locks") {
		got = append(got, fmt.Sprint(line.Kind, " ", line.At.Microseconds(), " ", line.Clock.Milliseconds()))
	}
	want := "session made -500 101, opened 0 101, asked 1000 0, node made 500 102, made 1100 0, leaving 2500 0, " +
		"node gone 2500 104, left 3400 0, node made 4500 106, node made 5500 0, asked 6000 0, promised 6500 0, died 6500 0, " +
		"session ended 7500 109, node gone 7500 0"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("%s, not\n%s", all, want)
	}
}
