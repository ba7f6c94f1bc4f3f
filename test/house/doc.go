// Package house holds the rules of this repository as data, and the tests that fail when the tree breaks one of them:
// who may import whom, what folders may not be called, how long a file may be, and that the documents say what is
// there. It has no code of its own.
package house
