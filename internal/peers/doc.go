// Package peers is a test: the clients that others wrote for ZooKeeper, unmodified, against the embedded ensemble and a
// real server alike. kazoo (Python) and Curator (Java) take locks with recipes of their own, beside each other and
// beside Sidekeeper, and ZooKeeper's command line looks at the nodes.
//
// It takes Python, Java and Maven; kazoo and Curator come from their registries, once, into the user's cache directory.
package peers
