package simulation_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// Members of one group come and go under the same few names, each with a session of its own.
const group = "/locks/group"

var memberSeeds = flag.Uint64("member-seeds", memberships, "how many random schedules of members to run")

func TestMembersAreTheirSessionsOwnWhateverFails(t *testing.T) {
	var total memberTally
	for seed := *firstSeed; seed < *firstSeed+*memberSeeds; seed++ {
		for _, promise := range playMembers(t, seed, properDelete, &total) {
			t.Errorf("seed %d: %s", seed, promise)
		}
	}
	t.Logf("%d created, %d names taken, %d updated, %d deleted, %d sessions lost",
		total.created.Load(), total.taken.Load(), total.updated.Load(), total.deleted.Load(), total.lost.Load())
	if seeds := int64(*memberSeeds); seeds >= 12 && (total.created.Load() < 15*seeds || total.taken.Load() < 20*seeds || total.lost.Load() == 0) {
		t.Error("too little happens")
	}
}

func TestSchedulesShowADeleteByNameAlone(t *testing.T) {
	var total memberTally
	for seed := range uint64(60) {
		if strings.Contains(strings.Join(playMembers(t, seed, carelessDelete, &total), "\n"), "is not its own") {
			t.Logf("in schedule %d", seed)
			return
		}
	}
	t.Error("not in one of 60 schedules")
}

func properDelete(s *zookeeper.Session, path string) { s.Delete(context.Background(), path) }

// carelessDelete asks again and again for the name to be free.
func carelessDelete(s *zookeeper.Session, path string) {
	for {
		_, err := s.Commit(context.Background(), recipes.Delete(path, -1))
		if !errors.Is(err, recipes.ErrOutcomeUnknown) || errors.Is(err, recipes.ErrSessionEnded) {
			return
		}
	}
}

type memberTally struct{ created, taken, updated, deleted, lost atomic.Int64 }

// playMembers plays one schedule with members and returns the promises that were broken.
func playMembers(t *testing.T, seed uint64, remove func(*zookeeper.Session, string), total *memberTally) []string {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 4))
	timeout := []time.Duration{4 * time.Second, 15 * time.Second}[dice.IntN(2)]
	options := simulation.Options{Seed: seed, Hosts: 2}
	return witnessed(t, options, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		newStage(t, e, w, timeout).run(dice, options.Hosts, func(c *caller) { (&member{c, remove, total}).live() })
	})
}

// A member is a caller that belongs to the group for a while, again and again.
type member struct {
	*caller
	remove func(*zookeeper.Session, string)
	total  *memberTally
}

// live lives until it has belonged to the group after everything was healed.
func (m *member) live() {
	for {
		late := m.healed.Err() != nil
		belonged, err := m.visit()
		if late && belonged {
			return
		}
		if m.over.Err() != nil {
			m.accusef("%v: %v", errStuck, err)
			return
		}
		time.Sleep(upTo(m.dice, time.Second))
	}
}

func (m *member) visit() (belonged bool, err error) {
	session, err := m.client.Open(m.over, 0)
	if err != nil {
		return false, err
	}
	m.watch(session)
	defer m.close(session)
	path := fmt.Sprintf("%s/%c", group, 'a'+m.dice.IntN(2))
	made, gone, err := m.join(session, path)
	if err != nil {
		return false, m.excuse(err)
	}
	m.total.created.Add(1)
	if err := m.belong(session, path, made); err != nil {
		return false, err
	}
	select {
	case <-gone:
		m.accusef("%x: told that somebody has deleted it", session.ID())
	default:
	}
	if m.dice.IntN(3) > 0 {
		m.leave(session, path)
	}
	return true, nil
}

// join creates the member as soon as the name is free.
func (m *member) join(session *zookeeper.Session, path string) (recipes.Node, <-chan struct{}, error) {
	for {
		made, gone, err := session.Create(m.over, path, m.data(session))
		if !errors.Is(err, recipes.ErrExists) {
			return made, gone.Done(), err
		}
		m.total.taken.Add(1)
		m.readOther(path)
		select {
		case <-time.After(upTo(m.dice, 300*time.Millisecond)):
		case <-m.over.Done():
			return recipes.Node{}, nil, errStuck
		}
	}
}

// trouble has what the session asks for now be late on its way to the leader, while the session loses its connection.
func (m *member) trouble(session *zookeeper.Session) {
	server, leader, host := m.ServerOf(session.ID()), m.Leader(), m.dice.IntN(2)
	if m.healed.Err() != nil || server < 0 || leader < 0 || server == leader {
		return
	}
	soon, late := upTo(m.dice, 15*time.Millisecond), upTo(m.dice, time.Second)
	time.AfterFunc(soon, func() { m.Slow(server, leader, late) })
	time.AfterFunc(soon+upTo(m.dice, 5*time.Millisecond), func() { m.Reset(host, server) })
	time.AfterFunc(time.Second, func() { m.Slow(server, leader, 0) })
}

// belong updates the member now and then, which must be its own all the time.
func (m *member) belong(session *zookeeper.Session, path string, made recipes.Node) error {
	m.check(session, path, made)
	updated := made
	for range m.dice.IntN(4) {
		select {
		case <-time.After(upTo(m.dice, 3*time.Second)):
		case <-session.Done():
			m.total.lost.Add(1)
			return session.Err()
		}
		m.check(session, path, made)
		m.trouble(session)
		var err error
		updated, err = m.update(session, path, updated.Version)
		if err != nil {
			m.total.lost.Add(1)
			return m.excuse(err)
		}
		m.total.updated.Add(1)
		m.check(session, path, updated)
	}
	return nil
}

// update finds out which version the data have if the reply to an update was lost.
func (m *member) update(session *zookeeper.Session, path string, version int32) (recipes.Node, error) {
	for {
		updated, err := session.Update(m.over, path, m.data(session), version)
		if !errors.Is(err, recipes.ErrBadVersion) {
			return updated, err
		}
		if err := session.CatchUp(m.over); err != nil {
			return recipes.Node{}, err
		}
		node, err := session.Get(m.over, path)
		if err != nil {
			return recipes.Node{}, err
		}
		version = node.Version
	}
}

// leave deletes the member.
func (m *member) leave(session *zookeeper.Session, path string) {
	m.trouble(session)
	m.remove(session, path)
	stat, there := m.Stat(path)
	if there && stat.Owner == session.ID() && session.ValidFor() > 0 {
		m.accusef("%x: still there", session.ID())
	}
	m.total.deleted.Add(1)
	time.Sleep(upTo(m.dice, 2*time.Second)) // the session lives on, and with it whatever it has asked for
}

// check looks whether what is committed is the session's, for as long as the session is certainly alive.
func (m *member) check(session *zookeeper.Session, path string, node recipes.Node) {
	stat, there := m.Stat(path)
	if session.ValidFor() > 0 && (!there || stat.Owner != session.ID() || stat.Czxid != node.Czxid || stat.Version < node.Version) {
		m.accusef("%s of %x is not its own: %v %+v", path, session.ID(), there, stat)
	}
}

// readOther looks whether what somebody else's node holds was written by its owner.
func (m *member) readOther(path string) {
	node, err := m.client.Get(m.over, path)
	if err == nil && string(node.Data) != fmt.Sprintf("%x", node.Owner) {
		m.accusef("%s of %x holds %s", path, node.Owner, node.Data)
	}
}

func (m *member) data(session *zookeeper.Session) []byte { return fmt.Appendf(nil, "%x", session.ID()) }
