package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a server, with the directory of its history, and a client of it.
func open(t *testing.T) (server *Server, client *Client, directory string) {
	t.Helper()
	directory = t.TempDir()
	writer, err := history.Create(directory, 9)
	must(t, err)
	t.Cleanup(func() { must(t, writer.Close()) })
	server, err = Serve(filepath.Join(directory, "stores"))
	must(t, err)
	t.Cleanup(server.Close)
	server.Begin(writer)
	client = Dial(filepath.Join(directory, "stores"), 3)
	t.Cleanup(client.Close)
	return server, client, directory
}

func TestTheFencedStoreRefusesWhoeverComesWithASmallerToken(t *testing.T) {
	_, client, directory := open(t)
	_, err := client.Read(history.Fenced, "l", 7)
	must(t, err)
	must(t, client.Write(history.Fenced, "l", 7, 1))
	_, err = client.Read(history.Fenced, "l", 8)
	must(t, err)
	if err := client.Write(history.Fenced, "l", 7, 2); !errors.Is(err, ErrRefused) {
		t.Errorf("an old token wrote: %v", err)
	}
	if _, err := client.Read(history.Fenced, "l", 7); !errors.Is(err, ErrRefused) {
		t.Errorf("an old token read: %v", err)
	}
	must(t, client.Write(history.Fenced, "other", 1, 5))
	events, err := history.ReadDirectory(directory)
	must(t, err)
	told := ""
	for i := range events {
		if e := &events[i]; e.Kind == history.Accepted || e.Kind == history.Refused {
			told += fmt.Sprintf("%s %s token %d value %d; ", e.Kind, e.Lock, e.Token, e.Value)
		}
	}
	if want := "accepted l token 7 value 1; refused l token 7 value 2; accepted other token 1 value 5; "; told != want {
		t.Errorf("its history is %q, not %q", told, want)
	}
}

func TestTheNaiveStoreLosesUpdates(t *testing.T) {
	server, client, _ := open(t)
	must(t, client.Write(history.Naive, "l", 8, 1))
	must(t, client.Write(history.Naive, "l", 9, 2))
	if server.Lost() != 0 {
		t.Errorf("%d lost by two writes that knew of each other", server.Lost())
	}
	must(t, client.Write(history.Naive, "l", 7, 1))
	if server.Lost() != 1 {
		t.Errorf("%d lost by a write that knew of none", server.Lost())
	}
}

func TestAnAmbushHoldsUpTheNextClientThatReadsUnderTheLock(t *testing.T) {
	server, client, _ := open(t)
	visits := make(chan *Visit)
	go func() {
		visit, err := server.Ambush(context.Background(), "l")
		if err != nil {
			t.Error(err)
		}
		visits <- visit
	}()
	read := make(chan struct{})
	var visit *Visit
	for visit == nil { // the first may be there before the ambush
		go func() {
			_, err := client.Read(history.Naive, "l", 7)
			if err != nil {
				t.Error(err)
			}
			read <- struct{}{}
		}()
		select {
		case visit = <-visits:
		case <-read:
		}
	}
	_, err := client.Read(history.Naive, "other", 7)
	must(t, err)
	select {
	case <-read:
		t.Error("answered before it was released")
	default:
	}
	if visit.Client != 3 || visit.Lock != "l" {
		t.Errorf("%+v", visit)
	}
	if server.Overtaken(visit) {
		t.Error("overtaken by nobody")
	}
	must(t, client.Write(history.Naive, "l", 8, 1))
	if !server.Overtaken(visit) {
		t.Error("another has written, and the visit is not overtaken")
	}
	visit.Release()
	<-read
}

func TestAnAmbushIsGivenUp(t *testing.T) {
	server, client, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := server.Ambush(ctx, "l"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err := client.Read(history.Naive, "l", 7)
	must(t, err)
}
