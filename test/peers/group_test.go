package peers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const groupRoot = "/sidekeeper/groups/"

func TestAMemberOfCuratorAndOursSeeEachOther(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		meet(t, s.client(t), startProgram(t, javaCommand(t, "Member", s.joined())), "group-with-curator")
	})
}

func TestAMemberOfKazooAndOursSeeEachOther(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		meet(t, s.client(t), startProgram(t, pythonCommand(t, "group.py", s.joined())), "group-with-kazoo")
	})
}

// meet has members come and go, ours before theirs and theirs before ours.
func meet(t *testing.T, client *sidekeeper.Client, other *peer, group string) {
	t.Helper()
	for _, first := range []string{"ours", "theirs"} {
		t.Run(first+" first", func(t *testing.T) {
			group := group + "-" + first
			join := func() *sidekeeper.Membership {
				membership, err := client.Join(t.Context(), group, "ours", sidekeeper.JoinOptions{})
				must(t, err)
				return membership
			}
			var ours *sidekeeper.Membership
			if first == "ours" {
				ours = join()
			}
			expect(t, other, "joined", "join", groupRoot+group, "theirs", "host-7")
			if first == "theirs" {
				ours = join()
			}
			awaitSeen(t, other, "ours theirs")
			awaitMembers(t, client, group, "ours theirs=host-7")
			_, err := client.Join(t.Context(), group, "theirs", sidekeeper.JoinOptions{})
			if !errors.Is(err, sidekeeper.ErrMemberExists) {
				t.Errorf("joined under the name of another with %v", err)
			}
			must(t, ours.Leave(t.Context()))
			awaitSeen(t, other, "theirs")
			ours = join()
			awaitSeen(t, other, "ours theirs")
			expect(t, other, "left", "leave")
			awaitMembers(t, client, group, "ours")
			must(t, ours.Leave(t.Context()))
		})
	}
}

// awaitSeen returns when the peer sees these members.
func awaitSeen(t *testing.T, by *peer, want string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got := by.tell(t, "members")
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it sees %q, want %q", got, want)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// awaitMembers returns when the sidecar shows these members, the foreign ones with what they say.
func awaitMembers(t *testing.T, client *sidekeeper.Client, group, want string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for change, err := range client.WatchGroup(t.Context(), group) {
		must(t, err)
		var members []string
		for _, member := range change.View.Members {
			words := member.Member
			if member.Foreign {
				words += "=" + member.Text
			}
			members = append(members, words)
		}
		got := strings.Join(members, " ")
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sidecar shows %q, want %q", got, want)
		}
	}
}
