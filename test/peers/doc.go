// Package peers is a test: the clients that others wrote for ZooKeeper, unmodified, against the embedded ensemble and a
// real one alike. Curator (Java), kazoo (Python) and go-zookeeper take locks with recipes of their own, in processes of
// their own, beside each other and beside Sidekeeper's callers; counters and groups are shared with them, and ZooKeeper's
// command line looks at the nodes. What works and what cannot is told in docs/interoperability.md, whose tables and lines
// of code are what these tests run.
//
// Who held a lock is noted by the contenders themselves, on the one clock of the machine, and guarded by a counter.
//
// It takes Python, Java and Maven; kazoo and Curator come from their registries, once, into the user's cache directory.
package peers
