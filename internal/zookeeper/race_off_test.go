//go:build !race

package zookeeper

const oneIn = 1
