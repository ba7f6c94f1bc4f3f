// Command sidekeeper is the sidecar, and what people use to look at it and to run commands under its locks.
package main

import (
	"context"
	"io"
	"log"
	"os"

	"google.golang.org/grpc/grpclog"
)

func main() {
	if os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL") == "" {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, libraryLog{}))
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// A libraryLog is wherever the log package writes by now: a process that outlives its log's reader has changed that.
type libraryLog struct{}

func (libraryLog) Write(line []byte) (int, error) { return log.Writer().Write(line) }
