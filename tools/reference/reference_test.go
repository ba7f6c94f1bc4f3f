package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// descriptors is a service of one rpc and the reasons of its errors, as buf gives them, with the comments that a test is about.
func descriptors(rpc, reason string) *descriptorpb.FileDescriptorSet {
	commented := func(comment string, path ...int32) *descriptorpb.SourceCodeInfo_Location {
		return &descriptorpb.SourceCodeInfo_Location{Path: path, Span: []int32{0, 0, 1}, LeadingComments: &comment}
	}
	value := func(name string, number int32) *descriptorpb.EnumValueDescriptorProto {
		return &descriptorpb.EnumValueDescriptorProto{Name: &name, Number: &number}
	}
	return &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: proto.String("sidekeeper/errors/v1/errors.proto"), Package: proto.String("sidekeeper.errors.v1"), Syntax: proto.String("proto3"),
		EnumType: []*descriptorpb.EnumDescriptorProto{{
			Name:  proto.String("Reason"),
			Value: []*descriptorpb.EnumValueDescriptorProto{value("REASON_UNSPECIFIED", 0), value("REASON_DOOR_SHUT", 1)},
		}},
		SourceCodeInfo: &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{
			commented(" Reason tells errors apart.\n", 5, 0), commented(reason, 5, 0, 2, 1),
		}},
	}, {
		Name: proto.String("sidekeeper/door/v1/door.proto"), Package: proto.String("sidekeeper.door.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("OpenRequest"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("key"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
		}}}},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("DoorService"),
			Method: []*descriptorpb.MethodDescriptorProto{{
				Name: proto.String("Open"), ServerStreaming: proto.Bool(true),
				InputType: proto.String(".sidekeeper.door.v1.OpenRequest"), OutputType: proto.String(".sidekeeper.door.v1.OpenRequest"),
			}},
		}},
		SourceCodeInfo: &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{
			commented(" DoorService opens doors. And that is all.\n", 6, 0), commented(rpc, 6, 0, 2, 0),
			commented(" OpenRequest is both; see DOOR_SHUT, `DOOR_SHUT` and DoorService.Open.\n", 4, 0), commented(" Which a|b.\n", 4, 0, 2, 0),
		}},
	}}}
}

const (
	goodRPC    = " Open opens.\n\n The stream ends with\n   OK: it is open.\n   ABORTED (DOOR_SHUT,\n   DOOR_SHUT): shut, or\n   bolted.\n"
	goodReason = " ABORTED: somebody shut it.\n\n What to do: knock.\n"
)

// written is the pages that come from a set of descriptors.
func written(t *testing.T, set *descriptorpb.FileDescriptorSet) (string, error) {
	t.Helper()
	encoded, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "api")
	if err := run([]string{folder}, bytes.NewReader(encoded)); err != nil {
		return "", err
	}
	return folder, nil
}

func TestCommentsBecomePagesThatLeadToEachOther(t *testing.T) {
	t.Parallel()
	folder, err := written(t, descriptors(goodRPC, goodReason))
	if err != nil {
		t.Fatal(err)
	}
	for name, wanted := range map[string][]string{
		"README.md": {"| [sidekeeper.door.v1.DoorService](door.md) | opens doors |"},
		"door.md": {
			"Server stream: [OpenRequest](#openrequest) → [OpenRequest](#openrequest)\n\nOpen opens.\n\nThe stream ends with:\n\n| status",
			"| OK |  | it is open. |\n| ABORTED | [DOOR_SHUT](reasons.md#door_shut), [DOOR_SHUT](reasons.md#door_shut) | shut, or bolted. |",
			"OpenRequest is both; see [DOOR_SHUT](reasons.md#door_shut), `DOOR_SHUT` and [DoorService.Open](#open).",
			"| 1 | `key` | repeated string | Which a\\|b. |",
		},
		"reasons.md": {
			"### DOOR_SHUT\n\nSomebody shut it.\n\n**Status:** ABORTED.\n\n**What to do:** Knock.\n\n" +
				"**Rpcs:** [DoorService/Open](door.md#open).",
		},
	} {
		page, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wanted {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s has no\n%s\nin\n%s", name, want, page)
			}
		}
	}
}

func TestACommentThatCannotBeToldIsNamed(t *testing.T) {
	t.Parallel()
	for said, from := range map[string]*descriptorpb.FileDescriptorSet{
		"sidekeeper.door.v1.DoorService.Open has no comment":                     descriptors("", goodReason),
		"names the reason DOOR_AJAR, which":                                      descriptors(" .\n\n   ABORTED (DOOR_AJAR): ajar.\n", goodReason),
		`no outcome begins with "by and by"`:                                     descriptors(" Opens.\n\n   by and by\n", goodReason),
		`no outcome in the form CODE (REASON): when: "ABORTED (DOOR_SHUT) shut"`: descriptors(" .\n\n   ABORTED (DOOR_SHUT) shut\n", goodReason),
		"REASON_DOOR_SHUT: its comment is not `STATUS: when`":                    descriptors(goodRPC, " ABORTED: somebody shut it.\n"),
		"the input has 0 files with services":                                    {},
	} {
		if _, err := written(t, from); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%v, want %q", err, said)
		}
	}
	if err := run(nil, strings.NewReader("")); err == nil {
		t.Error("no folder is no error")
	}
	if err := run([]string{t.TempDir()}, strings.NewReader("rubbish")); err == nil || !strings.Contains(err.Error(), "no set of descriptors") {
		t.Error(err)
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// Links lead to headings by their names alone, and of two with one name they would lead to the first.
func TestNoPageHasTwoHeadingsOfOneName(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/api/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, found := range heading.FindAllStringSubmatch(string(page), -1) {
			if seen[anchor(found[1])] {
				t.Errorf("%s has two headings %s", name, found[1])
			}
			seen[anchor(found[1])] = true
		}
	}
}
