package main

import (
	"embed"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The manual has a page for each command, `lock run` in help/lock-run.txt: what it does, and after a line `Examples:` how it is
// called. A line {{exits}} stands for what is in help/_exits.txt.
//
//go:embed help/*
var manual embed.FS

var (
	included  = regexp.MustCompile(`(?m)^\{\{(\w+)\}\}$`)
	manyEmpty = regexp.MustCompile(`\n{3,}`)
)

// addManuals gives a command and all below it their pages.
func addManuals(command *cobra.Command) {
	text := included.ReplaceAllStringFunc(manualPage(pageName(command)), func(line string) string {
		return "\n" + manualPage("_"+strings.Trim(line, "{}"))
	})
	about, examples, _ := strings.Cut(manyEmpty.ReplaceAllString(text, "\n\n"), "\nExamples:\n")
	command.Long, command.Example = strings.TrimSpace(about), strings.TrimRight(examples, "\n")
	for _, below := range command.Commands() {
		addManuals(below)
	}
}

// pageName is the name of a command's page: its words, without the program's name unless that is all.
func pageName(command *cobra.Command) string {
	name := strings.TrimPrefix(command.CommandPath(), command.Root().Name()+" ")
	return strings.ReplaceAll(name, " ", "-")
}

// manualPage is empty for a page that is missing, which a test finds.
func manualPage(name string) string {
	text, _ := manual.ReadFile("help/" + name + ".txt")
	return string(text)
}
