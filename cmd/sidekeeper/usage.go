package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is how many columns the help of flags takes.
const helpWidth = 100

// usage shows how a command is called: its line, examples, commands below it, and flags, which come by subject where there are many.
func usage(command *cobra.Command) error {
	_, err := fmt.Fprint(command.OutOrStderr(), usageText(command, command.InheritedFlags()))
	return err
}

// usageAlone is for commands that ask no sidecar, so that the flags that say how to reach one mean nothing to them.
func usageAlone(command *cobra.Command) error {
	_, err := fmt.Fprint(command.OutOrStderr(), usageText(command, &pflag.FlagSet{}))
	return err
}

func usageText(command *cobra.Command, inherited *pflag.FlagSet) string {
	var text strings.Builder
	text.WriteString("Usage:\n")
	if command.Runnable() && (!command.HasAvailableSubCommands() || strings.Contains(command.Use, " ")) {
		text.WriteString("  " + command.UseLine() + "\n")
	}
	if command.HasAvailableSubCommands() {
		text.WriteString("  " + command.CommandPath() + " [command]\n\nAvailable Commands:\n")
		for _, each := range command.Commands() {
			if each.IsAvailableCommand() || each.Name() == "help" {
				fmt.Fprintf(&text, "  %-*s %s\n", each.NamePadding(), each.Name(), each.Short)
			}
		}
	}
	if command.HasExample() {
		text.WriteString("\nExamples:\n" + command.Example + "\n")
	}
	writeFlags(&text, command.LocalFlags())
	if inherited.HasAvailableFlags() {
		text.WriteString("\nConnection and output flags:\n" + inherited.FlagUsagesWrapped(helpWidth))
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\nUse \"%s [command] --help\" for more about a command.\n", command.CommandPath())
	}
	return text.String()
}

// writeFlags shows flags below the names of their subjects, if there are more than a screen has room for.
func writeFlags(text *strings.Builder, flags *pflag.FlagSet) {
	count := 0
	flags.VisitAll(func(*pflag.Flag) { count++ })
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	rest.SortFlags = false
	taken := map[string]bool{}
	for _, subject := range settingGroups {
		of := subject.of(flags)
		if count <= maxUngrouped || !of.HasFlags() {
			continue
		}
		fmt.Fprintf(text, "\n%s:\n%s", subject.title, of.FlagUsagesWrapped(helpWidth))
		of.VisitAll(func(flag *pflag.Flag) { taken[flag.Name] = true })
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if !taken[flag.Name] {
			rest.AddFlag(flag)
		}
	})
	if rest.HasAvailableFlags() {
		text.WriteString("\nFlags:\n" + rest.FlagUsagesWrapped(helpWidth))
	}
}

// maxUngrouped is how many flags stand in one list.
const maxUngrouped = 16
