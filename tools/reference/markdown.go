package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// cell is a text within a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// anchor is what GitHub makes of a heading of one word.
func anchor(heading string) string { return strings.ToLower(heading) }

func capital(text string) string {
	letters := []rune(text)
	letters[0] = unicode.ToUpper(letters[0])
	return string(letters)
}

// local links to something on the same page.
func local(d protoreflect.Descriptor) string {
	return fmt.Sprintf("[%s](#%s)", d.Name(), anchor(string(d.Name())))
}

var word = regexp.MustCompile(`\b(?:[A-Z][A-Za-z]*Service\.)?[A-Z][A-Za-z_]*\b`)

// linked makes links of the reasons, rpcs and messages that a comment names, outside of what stands between backticks. Its own
// name is not linked.
func (b *book) linked(text, here, itself string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = word.ReplaceAllStringFunc(parts[i], func(name string) string {
			if target := b.target(name, here); target != "" && name != itself {
				return fmt.Sprintf("[%s](%s)", name, target)
			}
			return name
		})
	}
	return strings.Join(parts, "`")
}

// target is where a name of a comment leads: to a reason, to Service.Rpc, or to what the page itself has under this name and is no
// word of English.
func (b *book) target(name, here string) string {
	if strings.Contains(name, "_") && b.reasons.Values().ByName(protoreflect.Name("REASON_"+name)) != nil {
		if here == "" {
			return "#" + anchor(name)
		}
		return "reasons.md#" + anchor(name)
	}
	service, rpc, qualified := strings.Cut(name, ".")
	for _, file := range b.services {
		found := file.Services().Get(0)
		switch {
		case qualified && string(found.Name()) == service && found.Methods().ByName(protoreflect.Name(rpc)) != nil:
			return strings.TrimPrefix(pageOf(file)+"#"+anchor(rpc), here)
		case !qualified && pageOf(file) == here && isName(name) && file.Messages().ByName(protoreflect.Name(name)) != nil:
			return "#" + anchor(name)
		}
	}
	return ""
}

// isName says whether a word has a capital within, as no word of English has.
func isName(word string) bool { return strings.ContainsFunc(word[1:], unicode.IsUpper) }

const wellKnown = "https://protobuf.dev/reference/protobuf/google.protobuf/#"

// typeOf is a field's type, with a link to it.
func typeOf(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsMap():
		return fmt.Sprintf("map of %s to %s", singleType(field.MapKey()), singleType(field.MapValue()))
	case field.IsList():
		return "repeated " + singleType(field)
	case field.HasOptionalKeyword():
		return "optional " + singleType(field)
	default:
		return singleType(field)
	}
}

// linkTo leads from the page of a file to where a message or an enum is told of.
func linkTo(of protoreflect.Descriptor, from protoreflect.FileDescriptor) string {
	switch {
	case of.ParentFile() == from:
		return local(of)
	case of.ParentFile().Package() == "google.protobuf":
		return fmt.Sprintf("[%s](%s%s)", of.Name(), wellKnown, anchor(string(of.Name())))
	default:
		return fmt.Sprintf("[%s](%s#%s)", of.Name(), pageOf(of.ParentFile()), anchor(string(of.Name())))
	}
}

func singleType(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return linkTo(field.Message(), field.ParentFile())
	case protoreflect.EnumKind:
		return linkTo(field.Enum(), field.ParentFile())
	default:
		return field.Kind().String()
	}
}
