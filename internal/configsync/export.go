package configsync

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// Export writes all keys of a prefix as YAML, or into a new folder of files.
func Export(ctx context.Context, config *sidekeeper.Config, prefix, folder string, out io.Writer) error {
	stored, err := atOneMoment(ctx, config, prefix, nil)
	if err != nil {
		return err
	}
	exported := entriesBelow(prefix, stored)
	if folder == "" {
		return exported.writeYAML(out)
	}
	return exported.writeNew(folder)
}

func entriesBelow(prefix string, listed listing) entries {
	below := entries{}
	for _, entry := range listed {
		below[nameBelow(prefix, entry.Key)] = entry.Value
	}
	return below
}

// writeNew fills a folder that is empty or missing.
func (e entries) writeNew(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // what other folders have
		return err
	}
	present, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return exit.UsageError(fmt.Errorf("%s holds %s: choose an empty folder", folder, present[0].Name()))
	}
	return e.files().writeFiles(folder, 0o644)
}
