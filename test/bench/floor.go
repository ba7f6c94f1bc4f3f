package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// A floorCaller sends the fewest requests that still make a lock: create, with the list of the children right behind it,
// and delete; while it waits, one read that arms the watch on its predecessor, and one list when that is gone.
type floorCaller struct {
	session   *bare
	directory string
	own       string
}

func (f *floorCaller) close() { f.session.close() }

func (f *floorCaller) lock(_ context.Context, name string) error {
	f.directory = floorRoot + "/" + name
	f.session.request(link.Create, createBody(f.directory+"/lock-"))
	f.session.request(link.GetChildren, readBody(f.directory, false))
	if err := f.session.flush(); err != nil {
		return err
	}
	body, code, err := f.session.reply()
	if err != nil || code != 0 {
		return refused("create", code, err)
	}
	path, _ := cutString(body)
	f.own = path[len(f.directory)+1:]
	for {
		predecessor, err := f.predecessor()
		if err != nil || predecessor == "" {
			return err
		}
		if err := f.await(f.directory + "/" + predecessor); err != nil {
			return err
		}
		f.session.request(link.GetChildren, readBody(f.directory, false))
		if err := f.session.flush(); err != nil {
			return err
		}
	}
}

// predecessor reads the list that was asked for; it is empty if it is this caller's turn. All names have one prefix and as
// many digits.
func (f *floorCaller) predecessor() (string, error) {
	body, code, err := f.session.reply()
	if err != nil || code != 0 {
		return "", refused("list", code, err)
	}
	names := make([]string, binary.BigEndian.Uint32(body))
	body = body[4:]
	for i := range names {
		names[i], body = cutString(body)
	}
	slices.Sort(names)
	own, found := slices.BinarySearch(names, f.own)
	switch {
	case !found:
		return "", fmt.Errorf("%s is not among the children", f.own)
	case own == 0:
		return "", nil
	default:
		return names[own-1], nil
	}
}

// await returns when a node has changed or gone.
func (f *floorCaller) await(path string) error {
	f.session.request(link.GetData, readBody(path, true))
	if err := f.session.flush(); err != nil {
		return err
	}
	_, code, err := f.session.reply()
	switch {
	case err == nil && code == noNode:
		return nil
	case err != nil || code != 0:
		return refused("watch", code, err)
	default:
		return f.session.awaitFired(path)
	}
}

func (f *floorCaller) unlock(context.Context) error {
	f.session.request(link.Delete, deleteBody(f.directory+"/"+f.own))
	if err := f.session.flush(); err != nil {
		return err
	}
	_, code, err := f.session.reply()
	if err != nil || code != 0 {
		return refused("delete", code, err)
	}
	return nil
}

func refused(what string, code int32, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: the server answered %d", what, code)
}
