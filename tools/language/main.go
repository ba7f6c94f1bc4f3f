// Language checks what people read: documents, protos, help, errors and commits.
//
//	go -C tools run ./language check             # no file has more findings than its ceiling, and no ceiling is too high
//	go -C tools run ./language fix               # lower the ceilings to what is found
//	go -C tools run ./language subjects de9121eb # every commit after that one has a scope and a short subject
//
// Vale finds, by the rules in tools/vale/styles. A file that is not in test/house/language.tsv has a ceiling of 0. Ceilings only fall. After
// you rename a file, rename it there too.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Paths from tools/, where `go -C tools run` starts this program.
const (
	root         = ".."
	ceilingsFile = "../test/house/language.tsv"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		return compare(ctx, check)
	case len(args) == 1 && args[0] == "fix":
		return compare(ctx, fix)
	case len(args) == 2 && args[0] == "subjects":
		return checkSubjects(ctx, root, args[1])
	}
	return errors.New("usage: language check | fix | subjects BASE")
}

// compare reads the ceilings and what Vale finds now, and hands both over.
func compare(ctx context.Context, do func(file string, most ceilings, found findings) error) error {
	most, err := readCeilings(ceilingsFile)
	if err != nil {
		return err
	}
	found, err := findingsIn(ctx, root)
	if err != nil {
		return err
	}
	return do(ceilingsFile, most, found)
}
