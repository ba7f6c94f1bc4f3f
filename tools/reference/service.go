package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A page is the page of one service while it is written.
type page struct {
	*book
	file protoreflect.FileDescriptor
	out  strings.Builder
	err  error // the first comment that cannot be told
}

// servicePage tells of one service, and of all that its calls send and answer; or of messages that services share.
func (b *book) servicePage(file protoreflect.FileDescriptor) (string, error) {
	p := &page{book: b, file: file}
	fmt.Fprintf(&p.out, "%s# %s\n\n", generated, file.Package())
	p.contents()
	if file.Services().Len() > 0 {
		p.service(file.Services().Get(0))
	}
	p.out.WriteString("## Messages\n\n")
	for i := range file.Messages().Len() {
		p.message(file.Messages().Get(i))
	}
	if file.Enums().Len() > 0 {
		p.out.WriteString("## Enums\n\n")
	}
	for i := range file.Enums().Len() {
		p.enum(file.Enums().Get(i))
	}
	return strings.TrimSuffix(p.out.String(), "\n"), p.err
}

func (p *page) service(service protoreflect.ServiceDescriptor) {
	fmt.Fprintf(&p.out, "## %s\n\n", service.Name())
	p.paragraphs(p.describe(service), string(service.Name()))
	for i := range service.Methods().Len() {
		p.rpc(service.Methods().Get(i))
	}
}

func (p *page) describe(d protoreflect.Descriptor) description {
	told, err := describe(d)
	if p.err == nil {
		p.err = err
	}
	return told
}

func (p *page) paragraphs(told description, itself string) {
	for _, paragraph := range told.paragraphs {
		p.out.WriteString(ended(p.linked(paragraph, pageOf(p.file), itself)) + "\n\n")
	}
}

// ended gives a paragraph that leads to a table its colon.
func ended(paragraph string) string {
	if strings.ContainsAny(paragraph[len(paragraph)-1:], ".:") {
		return paragraph
	}
	return paragraph + ":"
}

func (p *page) contents() {
	list := func(title string, count int, get func(int) protoreflect.Descriptor) {
		var links []string
		for i := range count {
			links = append(links, local(get(i)))
		}
		if len(links) > 0 {
			fmt.Fprintf(&p.out, "- %s: %s\n", title, strings.Join(links, ", "))
		}
	}
	if p.file.Services().Len() > 0 {
		service := p.file.Services().Get(0)
		list(fmt.Sprintf("[%s](#%s)", service.Name(), anchor(string(service.Name()))), service.Methods().Len(),
			func(i int) protoreflect.Descriptor { return service.Methods().Get(i) })
	}
	list("[Messages](#messages)", p.file.Messages().Len(), func(i int) protoreflect.Descriptor { return p.file.Messages().Get(i) })
	list("[Enums](#enums)", p.file.Enums().Len(), func(i int) protoreflect.Descriptor { return p.file.Enums().Get(i) })
	fmt.Fprintf(&p.out, "- [API reference](README.md), [reasons](reasons.md), [the proto itself](../../proto/%s)\n\n", p.file.Path())
}

// rpc tells of one call, and notes the reasons that it names.
func (p *page) rpc(method protoreflect.MethodDescriptor) {
	told, kind := p.describe(method), "Unary"
	if method.IsStreamingServer() {
		kind = "Server stream"
	}
	fmt.Fprintf(&p.out, "### %s\n\n%s: %s → %s\n\n", method.Name(), kind, local(method.Input()), local(method.Output()))
	p.paragraphs(told, string(method.Name()))
	p.out.WriteString("| status | reason | when |\n|---|---|---|\n")
	for _, outcome := range told.outcomes {
		var links []string
		for _, reason := range outcome.reasons {
			if p.reasons.Values().ByName(protoreflect.Name("REASON_"+reason)) == nil && p.err == nil {
				p.err = fmt.Errorf("%s names the reason %s, which does not exist", method.FullName(), reason)
			}
			links = append(links, fmt.Sprintf("[%s](reasons.md#%s)", reason, anchor(reason)))
			here := mention{page: pageOf(p.file), service: string(method.Parent().Name()), rpc: string(method.Name())}
			if all := p.named[reason]; len(all) == 0 || all[len(all)-1] != here {
				p.named[reason] = append(all, here)
			}
		}
		fmt.Fprintf(&p.out, "| %s | %s | %s |\n", outcome.code, strings.Join(links, ", "), cell(p.linked(outcome.when, pageOf(p.file), "")))
	}
	p.out.WriteString("\n")
}

func (p *page) message(message protoreflect.MessageDescriptor) {
	fmt.Fprintf(&p.out, "### %s\n\n", message.Name())
	p.paragraphs(p.describe(message), string(message.Name()))
	if message.Fields().Len() == 0 {
		p.out.WriteString("No fields.\n\n")
		return
	}
	p.out.WriteString("| number | field | type | meaning |\n|---|---|---|---|\n")
	var group protoreflect.OneofDescriptor
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		of := field.ContainingOneof()
		if of != nil && of.IsSynthetic() {
			of = nil
		}
		if of != nil && of != group {
			fmt.Fprintf(&p.out, "| | `%s` | one of these | %s |\n", of.Name(), p.tell(of))
		}
		group = of
		indent := ""
		if of != nil {
			indent = "→ "
		}
		fmt.Fprintf(&p.out, "| %d | %s`%s` | %s | %s |\n", field.Number(), indent, field.Name(), typeOf(field), p.tell(field))
	}
	p.out.WriteString("\n")
}

func (p *page) enum(enum protoreflect.EnumDescriptor) {
	fmt.Fprintf(&p.out, "### %s\n\n", enum.Name())
	p.paragraphs(p.describe(enum), string(enum.Name()))
	p.out.WriteString("| number | value | meaning |\n|---|---|---|\n")
	for i := range enum.Values().Len() {
		value := enum.Values().Get(i)
		fmt.Fprintf(&p.out, "| %d | `%s` | %s |\n", value.Number(), value.Name(), p.tell(value))
	}
	p.out.WriteString("\n")
}

// tell is a comment in the cell of a table.
func (p *page) tell(d protoreflect.Descriptor) string {
	return cell(p.linked(p.describe(d).text(), pageOf(p.file), ""))
}
