package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// words are what servers are asked about themselves, for people to read.
var words = []string{"srvr", "cons", "dump", "mntr"}

// keepServers puts what the servers say and have logged beside the histories, when there is something to look into.
func (r *round) keepServers(ctx context.Context) error {
	var failed error
	for _, server := range r.stage.Ensemble.Servers() {
		failed = errors.Join(failed, r.keepServer(ctx, server))
	}
	return failed
}

func (r *round) keepServer(ctx context.Context, server *ensemble.Server) error {
	folder := filepath.Join(r.folder, fmt.Sprint("server-", server.ID()))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, word := range words {
		answer, err := server.Ask(ctx, word)
		if err != nil {
			answer = err.Error()
		}
		if err := os.WriteFile(filepath.Join(folder, word), []byte(answer), 0o644); err != nil {
			return err
		}
	}
	err := os.CopyFS(filepath.Join(folder, "data"), os.DirFS(filepath.Dir(server.Log())))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the server has deleted something meanwhile
	}
	return err
}
