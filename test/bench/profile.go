package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const profileSeconds = 10

// profile writes what the sidecar's processor does while something is done again and again, if profiles are wanted.
func (s *stage) profile(ctx context.Context, of *sidecar, name string, again func() error) error {
	if s.settings.profiles == "" {
		return nil
	}
	done := make(chan struct{})
	var profile []byte
	var failure error
	go func() {
		defer close(done)
		profile, failure = of.get(ctx, "profile?seconds="+strconv.Itoa(profileSeconds))
	}()
	for {
		select {
		case <-done:
			if failure != nil {
				return failure
			}
			where := filepath.Join(s.settings.profiles, fmt.Sprintf("%s-on-%d.pprof", name, len(s.addresses())))
			return os.WriteFile(where, profile, 0o600)
		default:
		}
		if err := again(); err != nil {
			<-done
			return err
		}
	}
}
