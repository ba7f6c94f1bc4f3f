package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// shower gives what writes the reply to an operation as text.
func (s *script) shower(op opcode) func(*decoder) string {
	d := s.show
	switch op {
	case opCreate, opSync:
		return func(in *decoder) string { return d.path(in.Text()) }
	case opCreate2, opCreateContainer, opCreateTTL:
		return func(in *decoder) string { return d.path(in.Text()) + " " + d.stat(in) }
	case opSetData, opExists, opCheck:
		return d.stat
	case opGetData:
		return func(in *decoder) string { return showData(in.bytes()) + " " + d.stat(in) }
	case opGetChildren:
		return showNames
	case opGetChildren2:
		return func(in *decoder) string { return showNames(in) + " " + d.stat(in) }
	case opGetACL:
		return func(in *decoder) string { return fmt.Sprint(in.acl()) + " " + d.stat(in) }
	case opGetAllChildrenNumber:
		return func(in *decoder) string { return strconv.Itoa(int(in.Int32())) }
	case opGetEphemerals:
		return func(in *decoder) string {
			paths := in.Texts()
			for i, path := range paths {
				paths[i] = d.path(path)
			}
			slices.Sort(paths)
			return fmt.Sprint(paths)
		}
	case opWhoAmI:
		return showClients
	}
	return nil
}

func showData(data []byte) string {
	if data == nil {
		return "null"
	}
	return fmt.Sprintf("%q", data)
}

func showNames(in *decoder) string {
	names := in.Texts()
	slices.Sort(names)
	return fmt.Sprint(names)
}

func showClients(in *decoder) string {
	var clients []string
	for range in.Length(4) {
		clients = append(clients, in.Text()+":"+in.Text())
	}
	slices.Sort(clients)
	return strings.Join(clients, " ")
}

// steps shows the reply to a multi.
func (s *script) steps(in *decoder) string {
	var results []string
	for {
		op, done, code := opcode(in.Int32()), in.Bool(), Code(in.Int32())
		if done || in.Failed() {
			return strings.Join(results, "; ")
		}
		results = append(results, s.stepResult(in, op, code))
	}
}

func (s *script) stepResult(in *decoder, op opcode, code Code) string {
	if op == opError {
		if again := Code(in.Int32()); again != code {
			return fmt.Sprintf("refused with %d and %d", code, again)
		}
		if code == codeOK {
			return "undone"
		}
		return code.Error()
	}
	if show := s.shower(op); show != nil && op != opCheck {
		return show(in)
	}
	return fmt.Sprintf("ok %d", op)
}
