package main

import (
	_ "embed" // the page around the table of services
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const generated = "<!-- Written by `make generate` from proto/. Change the comments there. -->\n\n"

// A book is what all pages need of each other.
type book struct {
	services []protoreflect.FileDescriptor // in the order of their names
	shared   []protoreflect.FileDescriptor // with messages that services have in common
	reasons  protoreflect.EnumDescriptor
	named    map[string][]mention // by reason: the rpcs whose comments name it
}

// A mention is a place that names a reason.
type mention struct{ page, service, rpc string }

// pagesOf writes all pages, by the names of their files.
func pagesOf(files *protoregistry.Files) (map[string]string, error) {
	b := &book{named: map[string][]mention{}}
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		switch {
		case file.Services().Len() > 0:
			b.services = append(b.services, file)
		case file.Enums().ByName("Reason") != nil:
			b.reasons = file.Enums().ByName("Reason")
		case file.Package() != "google.protobuf":
			b.shared = append(b.shared, file)
		}
		return true
	})
	if b.reasons == nil || len(b.services) == 0 {
		return nil, fmt.Errorf("the input has %d files with services, and an enum Reason: %v", len(b.services), b.reasons != nil)
	}
	slices.SortFunc(b.services, func(one, other protoreflect.FileDescriptor) int { return strings.Compare(one.Path(), other.Path()) })
	pages := map[string]string{}
	for _, file := range slices.Concat(b.services, b.shared) {
		text, err := b.servicePage(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Path(), err)
		}
		pages[pageOf(file)] = text
	}
	for name, write := range map[string]func() (string, error){"reasons.md": b.reasonsPage, "README.md": b.contentsPage} {
		text, err := write()
		if err != nil {
			return nil, err
		}
		pages[name] = text
	}
	return pages, nil
}

// pageOf is the file of the page of a service or of shared messages: lock.md.
func pageOf(file protoreflect.FileDescriptor) string {
	return strings.TrimSuffix(path.Base(file.Path()), ".proto") + ".md"
}

// contentsText is the page around the table of services.
//
//go:embed contents.tmpl
var contentsText string

// contentsPage leads to the others.
func (b *book) contentsPage() (string, error) {
	var table strings.Builder
	for _, file := range b.services {
		service := file.Services().Get(0)
		about, err := describe(service)
		if err != nil {
			return "", err
		}
		first, _, _ := strings.Cut(about.paragraphs[0], ". ")
		first = strings.TrimPrefix(first, string(service.Name())+" ")
		fmt.Fprintf(&table, "| [%s](%s) | %s |\n", service.FullName(), pageOf(file), cell(strings.TrimSuffix(first, ".")))
	}
	return generated + strings.Replace(contentsText, "{{services}}\n", table.String(), 1), nil
}

// reasonsPage tells of every reason.
func (b *book) reasonsPage() (string, error) {
	about, err := describe(b.reasons)
	if err != nil {
		return "", err
	}
	var table, sections strings.Builder
	for i := range b.reasons.Values().Len() {
		value := b.reasons.Values().Get(i)
		if value.Number() == 0 {
			continue
		}
		told, err := describe(value)
		if err != nil {
			return "", err
		}
		status, when, found := strings.Cut(told.paragraphs[0], ": ")
		if !found || len(told.paragraphs) != 2 || !strings.HasPrefix(told.paragraphs[1], "What to do: ") {
			return "", fmt.Errorf("%s: its comment is not `STATUS: when`, and then `What to do: …`", value.Name())
		}
		reason := strings.TrimPrefix(string(value.Name()), "REASON_")
		fmt.Fprintf(&table, "| [%s](#%s) | %s |\n", reason, anchor(reason), status)
		fmt.Fprintf(&sections, "### %s\n\n%s\n\n**Status:** %s.\n\n**What to do:** %s\n\n%s", reason, b.linked(capital(when), "", reason),
			status, capital(strings.TrimPrefix(told.paragraphs[1], "What to do: ")), b.mentions(reason))
	}
	return generated + "# Reasons\n\nWhy a call failed. " + strings.Join(about.paragraphs, "\n\n") + "\n\n[API reference](README.md)\n\n" +
		"| reason | status |\n|---|---|\n" + table.String() + "\n## Each reason\n\n" + strings.TrimSuffix(sections.String(), "\n"), nil
}

// mentions is the rpcs that name a reason.
func (b *book) mentions(reason string) string {
	var links []string
	for _, m := range b.named[reason] {
		links = append(links, fmt.Sprintf("[%s/%s](%s#%s)", m.service, m.rpc, m.page, anchor(m.rpc)))
	}
	if len(links) == 0 {
		links = []string{"every rpc"}
	}
	return "**Rpcs:** " + strings.Join(links, ", ") + ".\n\n"
}
