// Package documents is a test: it runs every command that a document of this repository shows, as a reader would, and
// compares what it prints with what the document says it prints. It holds tests only.
//
// Commands stand in two kinds of blocks. Those of kind `sh` are commands alone, of which each must succeed. Those of kind
// `console` are what somebody sees: a line `$ command`, or `name$ command` in a terminal of that name, and below it all that
// the command prints. `name$ ^C` is Ctrl-C in that terminal, and `name$ …` tells what its command has printed since. Each
// document is played from its beginning to its end, with terminals and a sidecar of its own.
//
// A block below a line "Save this as `FILE`:" is put into that file, in the terminal without a name.
//
// What differs from one run to the next is told from what does not by its form: ids, durations and times stand for any of
// their kind; a fencing token, an incarnation or a revision stands for the one that it stood for before, and is larger
// than another one in the document only if it is larger in truth. `…` stands for anything on its line, and alone
// on a line for any lines.
//
// What cannot be run here stands in a table, with what runs it instead. `go test ./test/documents -write` writes into the
// documents what the commands print now.
package documents
