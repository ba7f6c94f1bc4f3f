package main

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/configsync"
	"github.com/sidekeeper/sidekeeper/service"
)

// A lister lists all that there is of one kind, or what is below a prefix of whole segments.
type lister[T any] func(client *sidekeeper.Client, ctx context.Context, prefix string) iter.Seq2[T, error]

// listing is what a command does that shows a list.
func listing[T any](reach *reach, list lister[T], show func(io.Writer, []T) error) does {
	return asking(reach, func(ctx context.Context, client *sidekeeper.Client, args []string) ([]T, error) {
		return configsync.Collect(list(client, ctx, prefixOf(args)))
	}, show)
}

// prefixOf is the prefix that was given, if any. People may end it as they end the name of a folder.
func prefixOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return strings.TrimSuffix(args[0], "/")
}

// allPages lists page after page; next returns one, and the token of the one after.
func allPages[T any](next func(token string) ([]T, string, error)) (all []T, _ error) {
	for token, more := "", true; more; more = token != "" {
		page, following, err := next(token)
		if err != nil {
			return nil, err
		}
		all, token = append(all, page...), following
	}
	return all, nil
}

// completionTime bounds how long a shell waits for names; tests wait for longer.
var completionTime = time.Second

// maxCompletions bounds what a shell shows.
const maxCompletions = 1000

// complete names what begins with the first argument, as far as it was typed. It leaves out names that only another library's program can have
// chosen: a shell runs what stands in some.
func complete[T any](
	reach *reach, command *cobra.Command, args []string, begun string, list lister[T], name func(T) string,
) (names []string, directive cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	reach.timeout = min(reach.timeout, completionTime)
	above := begun[:max(strings.LastIndexByte(begun, '/'), 0)]
	err := reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
		for listed, err := range list(client, ctx, above) {
			if err != nil {
				return err
			}
			if found := name(listed); strings.HasPrefix(found, begun) && service.BrokenNameRule(found) == "" {
				names = append(names, found)
			}
			if len(names) == maxCompletions {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
