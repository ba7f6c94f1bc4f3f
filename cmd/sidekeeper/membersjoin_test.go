package main

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// joins starts `members join` of a command of this test binary, whose lease the server opens.
func joins(t *testing.T, server *scripted.Server, flags []string, behaviour string) *program {
	t.Helper()
	args := append([]string{"members", "join", "web", "web-1"}, flags...)
	p := start(t, server.Target, append(args, "--", os.Args[0], behaviour)...)
	accept(server, 1)
	return p
}

func accept(server *scripted.Server, number byte) *scripted.Open {
	open := server.NextOpen()
	open.Accept("0123456789abcdef0123456789abcde" + string('0'+number))
	return open
}

func TestTheCommandIsAMemberWhileItRuns(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, []string{
		"--metadata", "port=80", "--metadata", "az=x=y", "--owner", "me", "--on-conflict", "replace", "--wait", "1h",
	}, "membership")
	call := server.Groups.NextJoin()
	if r := call.Request; r.GetGroup() != "web" || r.GetMember() != "web-1" || r.GetOwner() != "me" ||
		r.GetMetadata()["port"] != "80" || r.GetMetadata()["az"] != "x=y" || r.GetWaitTimeout().AsDuration().Round(time.Minute) != time.Hour ||
		r.GetOnConflict() != membershipv1.OnConflict_ON_CONFLICT_REPLACE {
		t.Errorf("%v", r)
	}
	call.Admit(77)
	p.wantLine(t, "web web-1 77 false")
	p.want(t, 3)
	call.AwaitGone()
}

func TestAMemberJoinsUnderTheLocksThatGuardIt(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, []string{"--guard", "orders:7"}, "membership")
	call := server.Groups.NextJoin()
	ticket := call.Request.GetGuards()[0].GetTicket()
	if len(call.Request.GetGuards()) != 1 || ticket.GetLock() != "orders" || ticket.GetFencingToken() != 7 {
		t.Errorf("%v", call.Request)
	}
	call.End(scripted.Status(codes.FailedPrecondition, "GUARD_LOST", "a hold has ended"))
	p.want(t, exit.Lost)
}

func TestSignalsReachAMember(t *testing.T) {
	t.Parallel()
	heeded := make(chan os.Signal, 16)
	signal.Notify(heeded, supervise.Forwarded...)
	defer signal.Stop(heeded)
	server := scripted.Start(t)
	p := joins(t, server, nil, "polite")
	server.Groups.NextJoin().Admit(1)
	p.wantLine(t, "ready")
	for _, c := range []struct {
		number syscall.Signal
		line   string
	}{{syscall.SIGUSR1, "user defined signal 1"}, {syscall.SIGTERM, "terminated"}} {
		p.signal(c.number)
		p.wantLine(t, c.line)
	}
	p.want(t, 5)
}

func lost() error { return scripted.Status(codes.Aborted, "LEASE_LOST", "the lease has expired") }

func replaced() error {
	return scripted.Status(codes.Aborted, "MEMBER_REPLACED", "asked for by uid:7")
}

func TestACommandThatIsNoMemberAnyMoreIsTerminatedAndThenKilled(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, []string{"--kill-grace", "300ms"}, "stubborn")
	call := server.Groups.NextJoin()
	call.Admit(1)
	p.wantLine(t, "ready")
	call.End(replaced())
	p.wantLine(t, "terminated")
	p.want(t, 70, "MEMBER_REPLACED", "the command was ended because it is no longer a member of web")
}

func TestACommandMayGoOnWithoutItsMembership(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, []string{"--on-loss", "ignore"}, "polite")
	call := server.Groups.NextJoin()
	call.Admit(1)
	p.wantLine(t, "ready")
	call.End(lost())
	p.awaitWords(t, "LEASE_LOST")
	p.signal(syscall.SIGTERM)
	p.wantLine(t, "terminated")
	p.want(t, 5)
}

// awaitWords returns when the program has said this on stderr.
func (p *program) awaitWords(t *testing.T, words string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.stderr.String(), words); {
		if time.Now().After(deadline) {
			t.Fatalf("stderr is %q, want %q in it", p.stderr, words)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestACommandJoinsAgainAndWaitsForItsOwnGhost(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, []string{"--on-loss", "rejoin", "--kill-grace", "300ms"}, "stubborn")
	call := server.Groups.NextJoin()
	call.Admit(1)
	p.wantLine(t, "ready")
	call.End(lost())
	accept(server, 2)
	again := server.Groups.NextJoin()
	if r := again.Request; r.GetOnConflict() != membershipv1.OnConflict_ON_CONFLICT_WAIT || r.GetWaitTimeout() != nil {
		t.Errorf("%v", r)
	}
	again.End(scripted.Status(codes.Unavailable, "ENSEMBLE_UNREACHABLE", "no answer"))
	accept(server, 3)
	third := server.Groups.NextJoin()
	third.Admit(2)
	p.awaitWords(t, "rejoined web as incarnation 2")
	third.End(replaced())
	p.wantLine(t, "terminated")
	p.want(t, 70, "MEMBER_REPLACED")
}

func TestANameInUseIsNotObtained(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, nil, "polite")
	server.Groups.NextJoin().End(scripted.Status(codes.AlreadyExists, "MEMBER_EXISTS", "there is one"))
	p.want(t, 75, "there is one (MEMBER_EXISTS)")
}

func TestASignalEndsTheWaitingForAName(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	p := joins(t, server, []string{"--on-conflict", "wait"}, "polite")
	call := server.Groups.NextJoin()
	p.signal(syscall.SIGINT)
	call.AwaitGone()
	p.want(t, 130, "given up: interrupt")
}

func TestMembersJoinIsCalledInTheRightWay(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	usage := "sidekeeper: usage: sidekeeper members join GROUP MEMBER -- COMMAND [ARGUMENT...]\n"
	wantOutput(t, server, 64, usage, "members", "join", "web", "--", "true")
	wantOutput(t, server, 64, usage, "members", "join", "web", "web-1", "true")
	wantOutput(t, server, 64, "sidekeeper: --wait is for --on-conflict wait or replace\n",
		"members", "join", "web", "web-1", "--wait", "1s", "--", "true")
	wantOutput(t, server, 64, "sidekeeper: --kill-grace is \"-1s\": a duration from 0s, such as 1m30s\n",
		"members", "join", "web", "web-1", "--kill-grace", "-1s", "--", "true")
	for _, wrong := range []string{"port", "=80"} {
		wantOutput(t, server, 64, "sidekeeper: --metadata "+wrong+": each as key=value, and each key once\n",
			"members", "join", "web", "web-1", "--metadata", wrong, "--", "true")
	}
	wantOutput(t, server, 64, "sidekeeper: --metadata a=2: each as key=value, and each key once\n",
		"members", "join", "web", "web-1", "--metadata", "a=1", "--metadata", "a=2", "--", "true")
	wantOutput(t, server, 127, "sidekeeper: exec: \"no-such-command\": executable file not found in $PATH\n",
		"members", "join", "web", "web-1", "--", "no-such-command")
}
