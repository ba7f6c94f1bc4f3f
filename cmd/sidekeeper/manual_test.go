package main

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const commandsPath = "../../docs/commands.md"

func TestThePageOfTheCommandsShowsTheirHelp(t *testing.T) {
	for _, name := range []string{sidekeeper.AddressVariable, operatorAddressVariable, adminVariable} {
		t.Setenv(name, "") // its default stands on the page
	}
	written, err := os.ReadFile(commandsPath)
	if err != nil {
		t.Fatal(err)
	}
	compareOrUpdate(t, commandsPath, string(written), commandsPage())
}

func TestEveryCommandHasAManual(t *testing.T) {
	t.Parallel()
	pages, includes := map[string]bool{}, regexp.MustCompile(`[{}]{2}`)
	everyCommand(func(command *cobra.Command) {
		pages["help/"+pageName(command)+".txt"] = true
		if command.Short == "" || command.Long == "" || command.Example == "" {
			t.Errorf("%s: its short help is %q; its page says %q, with the examples %q",
				command.CommandPath(), command.Short, command.Long, command.Example)
		}
		for line := range strings.Lines(command.Long + "\n" + command.Example) {
			if utf8.RuneCountInString(line) > helpWidth+10 || includes.MatchString(line) {
				t.Errorf("%s: too long, or includes what there is not: %s", command.CommandPath(), line)
			}
		}
		for _, example := range examplesOf(command) {
			if words := command.CommandPath(); !strings.Contains(example, strings.TrimPrefix(words, "sidekeeper ")) {
				t.Errorf("%s: %q is no example of it", words, example)
			}
		}
	})
	everyPage(t, func(path string) {
		if !pages[path] && !strings.HasPrefix(path, "help/_") {
			t.Errorf("%s is the page of no command", path)
		}
	})
}

func everyPage(t *testing.T, do func(path string)) {
	t.Helper()
	found, err := fs.Glob(manual, "help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		do(path)
	}
}

func TestEveryFlagSaysInAPhraseWhatItIs(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`^(tickTime|syncLimit|[a-z])`)
	everyCommand(func(command *cobra.Command) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if _, help := pflag.UnquoteUsage(flag); !names.MatchString(help) || strings.HasSuffix(help, ".") {
				t.Errorf("%s --%s: %q is no phrase that begins in lower case", command.CommandPath(), flag.Name, help)
			}
		})
	})
}

// commandsPage is the help of all commands in Markdown.
func commandsPage() string {
	var list, pages strings.Builder
	everyCommand(func(command *cobra.Command) {
		path := command.CommandPath()
		fmt.Fprintf(&list, "| [%s](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), strings.ReplaceAll(command.Short, "|", `\|`))
		fmt.Fprintf(&pages, "\n## %s\n\n", path)
		if command.Runnable() && (!command.HasAvailableSubCommands() || strings.Contains(command.Use, " ")) {
			fmt.Fprintf(&pages, "    %s\n\n", command.UseLine())
		}
		pages.WriteString(proseOf(command.Long) + "\n\n")
		if command.HasExample() {
			fmt.Fprintf(&pages, "Examples:\n\n%s\n", regexp.MustCompile(`(?m)^  `).ReplaceAllString(command.Example, "    "))
		}
		pages.WriteString(commandFlags(command))
	})
	return commandsAbove + "| command | what it does |\n|---|---|\n" + list.String() + pages.String()
}

const commandsAbove = `<!-- Written from the commands by: go test ./cmd/sidekeeper -run TestThePage -update
     What they say is changed in cmd/sidekeeper/help. -->

# Commands

What ` + "`sidekeeper --help`" + ` and ` + "`sidekeeper COMMAND --help`" + ` say. A test runs every example.

`

// proseOf is a page of the manual in Markdown: lines that are set in stay as they are.
func proseOf(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines, before := strings.Split(paragraph, "\n"), false
		for i, line := range lines {
			set := strings.HasPrefix(line, "  ")
			if set {
				lines[i] = "  " + line
			}
			if set && !before && i > 0 {
				lines[i] = "\n" + lines[i]
			}
			before = set
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return strings.Join(out, "\n\n")
}

// commandFlags is the table of a command's own flags.
func commandFlags(command *cobra.Command) string {
	if command.Name() == "serve" || command.Name() == "dev" || command.Name() == "inject-webhook" {
		return "\nIts flags are its settings: see [the configuration reference](configuration.md).\n"
	}
	var text strings.Builder
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" {
			return
		}
		if text.Len() == 0 {
			text.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
		}
		_, help := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", name, defaultOf(flag), strings.ReplaceAll(withChoices(flag, help), "|", `\|`))
	})
	return text.String()
}

// withChoices adds the words that a flag takes, if it takes some.
func withChoices(flag *pflag.Flag, help string) string {
	if words, ok := flag.Value.(*choice); ok {
		return help + ": `" + strings.Join(words.values, "`, `") + "`"
	}
	return help
}
