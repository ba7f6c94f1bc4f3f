// Package txnlog reads the transaction logs of ZooKeeper servers and puts those of an ensemble together: which changes were
// made, in which order, by which session. It is the servers' own truth, to compare with what callers were told.
//
// A transaction counts if most servers have logged it. A single log is no proof: a leader that was cut off keeps what it
// logged for nobody, also when it has joined the others again and logs what they agree on. Nor is it complete: servers skip
// what they get as a snapshot. Reading is safe while servers write: what is not complete yet is left out.
package txnlog

import (
	"fmt"
	"maps"
	"slices"
)

// A Log is what an ensemble has done.
type Log struct {
	// Since is the zxid after which it begins.
	Since int64
	// Transactions are in the order of their zxids.
	Transactions []Transaction
	// Faults are what must not be if the servers do what ZooKeeper promises: none of it is its callers' fault.
	Faults []string
	// Gaps are where transactions are missing in all logs, so that this one is not the whole truth.
	Gaps []string
}

// Read reads the logs of all servers of an ensemble, by their data directories, from after a zxid on; 0 means from the
// beginning.
func Read(since int64, directories ...string) (*Log, error) {
	servers := make([][]Transaction, len(directories))
	for i, directory := range directories {
		var err error
		if servers[i], err = readServer(since, directory); err != nil {
			return nil, err
		}
	}
	return merge(since, servers), nil
}

// merge puts the logs of all servers together.
func merge(since int64, servers [][]Transaction) *Log {
	l := &Log{Since: since}
	copies := map[int64][]Transaction{}
	for i, transactions := range servers {
		for _, transaction := range l.inOrder(i+1, transactions) {
			copies[transaction.Zxid] = append(copies[transaction.Zxid], transaction)
		}
	}
	for _, zxid := range slices.Sorted(maps.Keys(copies)) {
		l.checkCopies(copies[zxid])
		if len(copies[zxid]) > len(servers)/2 {
			l.Transactions = append(l.Transactions, copies[zxid][0])
		}
	}
	l.findGaps()
	return l
}

// inOrder leaves out what a server has logged after something later.
func (l *Log) inOrder(server int, transactions []Transaction) []Transaction {
	var kept []Transaction
	last := l.Since
	for _, transaction := range transactions {
		if transaction.Zxid <= last {
			l.faultf("server %d has logged %#x after %#x", server, transaction.Zxid, last)
			continue
		}
		last = transaction.Zxid
		kept = append(kept, transaction)
	}
	return kept
}

func (l *Log) checkCopies(copies []Transaction) {
	for _, copied := range copies[1:] {
		if copied.content != copies[0].content {
			l.faultf("%#x is %s on one server and %s on another", copied.Zxid, copies[0], copied)
		}
	}
}

func (l *Log) faultf(format string, arguments ...any) {
	l.Faults = append(l.Faults, fmt.Sprintf(format, arguments...))
}

// epoch is the upper half of a zxid: the leader's number. The lower half counts its transactions without a gap.
func epoch(zxid int64) int64 { return zxid >> 32 }

func (l *Log) findGaps() {
	before := l.Since
	for _, transaction := range l.Transactions {
		first := epoch(transaction.Zxid)<<32 + 1
		if epoch(before) == epoch(transaction.Zxid) {
			first = before + 1
		}
		if transaction.Zxid > first {
			l.Gaps = append(l.Gaps, fmt.Sprintf("%#x to %#x", first, transaction.Zxid-1))
		}
		before = transaction.Zxid
	}
}

// Last is the zxid of the last transaction.
func (l *Log) Last() int64 {
	if len(l.Transactions) == 0 {
		return l.Since
	}
	return l.Transactions[len(l.Transactions)-1].Zxid
}

// String says what the transaction is, for people.
func (t Transaction) String() string {
	var changes []string
	for _, change := range t.Changes {
		changes = append(changes, fmt.Sprintf("%s %s", change.Kind, change.Path))
	}
	return fmt.Sprintf("{session %#x cxid %d error %d %q}", t.Session, t.Cxid, t.Failed, changes)
}

// String names the kind.
func (k Kind) String() string {
	return [...]string{"other", "create", "delete", "set", "begin session", "end session"}[k]
}
