// Reference writes docs/api from the protos: a page for each service, one for the reasons of errors, and one that leads to
// them. What the pages say stands in the protos' comments and nowhere else.
//
//	buf build -o - | go -C tools run ./reference ../docs/api
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// run is the program: descriptors in, pages into the folder.
func run(args []string, descriptors io.Reader) error {
	if len(args) != 1 {
		return errors.New("say into which folder to write, and give it what `buf build -o -` writes")
	}
	files, err := read(descriptors)
	if err != nil {
		return err
	}
	pages, err := pagesOf(files)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // as other folders of documents
		return err
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644); err != nil { //nolint:gosec // as other documents
			return err
		}
	}
	return nil
}

// read takes a set of descriptors with the comments of their sources.
func read(descriptors io.Reader) (*protoregistry.Files, error) {
	encoded, err := io.ReadAll(descriptors)
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(encoded, set); err != nil {
		return nil, fmt.Errorf("the input is no set of descriptors: %w", err)
	}
	return protodesc.NewFiles(set)
}
