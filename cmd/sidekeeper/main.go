// Command sidekeeper is the sidecar, and what people use to look at it and to run commands under its locks.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
