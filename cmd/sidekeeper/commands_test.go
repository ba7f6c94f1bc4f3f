package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// wantOutput runs a command towards the server and compares all that a person sees.
func wantOutput(t *testing.T, server *scripted.Server, code int, want string, args ...string) {
	t.Helper()
	stdout, stderr, got := output(t, append([]string{"--address", server.Target}, args...)...)
	if seen := stdout + stderr; got != code || seen != want {
		t.Errorf("%s: exit code %d, want %d\n%s\nwant\n%s", strings.Join(args, " "), got, code, seen, want)
	}
}

func view() *lockv1.View {
	return &lockv1.View{
		Name: "orders",
		Holders: []*holdv1.Contender{{
			Mode: new(holdv1.Mode_MODE_WRITE), Owner: "billing", Metadata: map[string]string{"pod": "b-1", "az": "x"}, Identity: "uid:7",
			Token: 4294967321, Age: durationpb.New(83 * time.Second), RevocationRequested: true,
		}},
		Waiters: []*holdv1.Contender{{
			Mode: new(holdv1.Mode_MODE_READ), Owner: "\x1b[2J", Token: 4294967330,
			Age: durationpb.New(1234 * time.Millisecond), Foreign: true,
		}},
		WaitersOmitted: 4,
	}
}

func TestLockShowShowsTheQueue(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Get = func(context.Context, *lockv1.GetRequest) (*lockv1.GetResponse, error) {
		return &lockv1.GetResponse{View: view()}, nil
	}
	wantOutput(t, server, 0, ""+
		"STATE    MODE   TOKEN       OWNER      IDENTITY  AGE    METADATA      NOTES\n"+
		"held     write  4294967321  billing    uid:7     1m23s  az=x,pod=b-1  revocation requested\n"+
		"waiting  read   4294967330  \"\\x1b[2J\"  -         1.2s   -             not Sidekeeper's\n"+
		"and 4 more\n", "lock", "show", "orders")
	wantOutput(t, server, 0, `{"name":"orders","holders":[{"mode":"MODE_WRITE","owner":"billing",`+
		`"metadata":{"az":"x","pod":"b-1"},"token":"4294967321","age":"83s","foreign":false,`+
		`"revocationRequested":true,"identity":"uid:7"}],"waiters":[{"mode":"MODE_READ","owner":"\u001b[2J","metadata":{},`+
		`"token":"4294967330","age":"1.234s","foreign":true,"revocationRequested":false,"identity":""}],"waitersOmitted":4}`+
		"\n", "lock", "show", "orders", "--output", "json")
}

func TestLockShowTellsOfDelays(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	shown := view()
	shown.Holders[0].LockDelay = durationpb.New(15 * time.Second)
	server.Get = func(context.Context, *lockv1.GetRequest) (*lockv1.GetResponse, error) {
		return &lockv1.GetResponse{View: shown}, nil
	}
	wantOutput(t, server, 0, ""+
		"STATE    MODE   TOKEN       OWNER      IDENTITY  AGE    METADATA      NOTES\n"+
		"held     write  4294967321  billing    uid:7     1m23s  az=x,pod=b-1  revocation requested, delay of 15s\n"+
		"waiting  read   4294967330  \"\\x1b[2J\"  -         1.2s   -             not Sidekeeper's\n"+
		"and 4 more\n", "lock", "show", "orders")
	shown = &lockv1.View{Name: "orders", LostHold: &lockv1.LostHold{FencingToken: 4294967321, LockDelay: durationpb.New(15 * time.Second)}}
	wantOutput(t, server, 0, ""+
		"STATE  MODE  TOKEN       OWNER  IDENTITY  AGE  METADATA  NOTES\n"+
		"lost   -     4294967321  -      -         -    -         its delay of 15s is kept\n", "lock", "show", "orders")
}

func TestLockShowSaysThatALockIsFree(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Get = func(_ context.Context, request *lockv1.GetRequest) (*lockv1.GetResponse, error) {
		return &lockv1.GetResponse{View: &lockv1.View{Name: request.GetName()}}, nil
	}
	wantOutput(t, server, 0, "orders is free\n", "lock", "show", "orders")
	wantOutput(t, server, 0, "orders:eu is free, and no caller can acquire it: the clients' NameOf makes _-orders_3aeu of it\n",
		"lock", "show", "orders:eu")
}

func TestLockShowWatchesUntilTheStreamEnds(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Watch = func(r *lockv1.WatchRequest, stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
		for _, stale := range []bool{false, true, false} {
			if err := stream.Send(&lockv1.WatchResponse{View: &lockv1.View{Name: r.GetName()}, Stale: stale}); err != nil {
				return err
			}
		}
		return scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "the sidecar is going down")
	}
	wantOutput(t, server, 69, "orders is free\norders is free\nno contact with the ensemble: this may be out of date\norders is free\n"+
		"sidekeeper: the sidecar is going down (SIDECAR_STOPPING)\n", "lock", "show", "orders", "--watch")
	line := `{"view":{"name":"orders","holders":[],"waiters":[],"waitersOmitted":0},"stale":%t}` + "\n"
	wantOutput(t, server, 69, fmt.Sprintf(line+line+line, false, true, false)+
		"sidekeeper: the sidecar is going down (SIDECAR_STOPPING)\n", "lock", "show", "orders", "--watch", "-o", "json")
}

func TestLockLsListsNames(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.List = func(_ context.Context, request *lockv1.ListRequest) (*lockv1.ListResponse, error) {
		return &lockv1.ListResponse{Locks: []*lockv1.Lock{{Name: request.GetPrefix() + "/eu", Contenders: 3}}}, nil
	}
	wantOutput(t, server, 0, "NAME       CONTENDERS  CLAIMS\norders/eu  3           0\n", "lock", "ls", "orders")
	wantOutput(t, server, 0, `{"locks":[{"name":"orders/eu","contenders":3,"claims":0}],"nextPageToken":""}`+"\n",
		"lock", "ls", "orders", "-o", "json")
}

func TestLockRevokeAsksAndWithAGraceAsAnOperator(t *testing.T) {
	t.Parallel()
	server, operators := scripted.Start(t), scripted.Start(t)
	server.Revoke = func(_ context.Context, request *lockv1.RevokeRequest) (*lockv1.RevokeResponse, error) {
		if request.GetGrace() != nil || request.GetReason() != "moving" {
			return nil, scripted.Status(codes.PermissionDenied, "OPERATOR_ONLY", "a grace is for operators")
		}
		return &lockv1.RevokeResponse{Asked: 2}, nil
	}
	operators.Revoke = func(_ context.Context, request *lockv1.RevokeRequest) (*lockv1.RevokeResponse, error) {
		return &lockv1.RevokeResponse{Asked: int32(request.GetGrace().GetSeconds())}, nil
	}
	wantOutput(t, server, 0, "holders asked: 2\n", "lock", "revoke", "orders", "--reason", "moving")
	wantOutput(t, server, 0, `{"asked":30}`+"\n",
		"lock", "revoke", "orders", "--grace", "30s", "--operator-address", operators.Target, "-o", "json")
	wantOutput(t, server, 1, "holders asked: 0\nsidekeeper: no caller holds the lock typo\n",
		"lock", "revoke", "typo", "--grace", "0s", "--operator-address", operators.Target)
	wantOutput(t, server, 77, "sidekeeper: a grace is for operators (OPERATOR_ONLY): use the operators' socket, "+
		"see --operator-address\n", "lock", "revoke", "orders", "--grace", "1s", "--operator-address", server.Target)
	// --address alone is where operators are, too: another sidecar may listen at the default.
	wantOutput(t, server, 0, "holders asked: 5\n", "lock", "revoke", "orders", "--grace", "5s", "--address", operators.Target)
}

func TestLockBreakEndsTheHoldWithThisToken(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Break = func(_ context.Context, request *lockv1.BreakRequest) (*lockv1.BreakResponse, error) {
		if request.GetFencingToken() != 42 {
			return nil, scripted.Status(codes.FailedPrecondition, "FENCING_TOKEN_MISMATCH", "nobody has this token")
		}
		return &lockv1.BreakResponse{Forced: request.GetForceAfter() != nil}, nil
	}
	as := []string{"lock", "break", "orders", "--operator-address", server.Target, "--reason", "stuck"}
	wantOutput(t, server, 0, "hold 42 of orders: ended by its sidecar, or with its lease\n", append(as, "--token", "42")...)
	wantOutput(t, server, 0, "hold 42 of orders: removed from outside: its holder may not have known in time\n",
		append(as, "--token", "42", "--force-after", "0s")...)
	wantOutput(t, server, 1, "sidekeeper: nobody has this token (FENCING_TOKEN_MISMATCH)\n", append(as, "--token", "1")...)
	wantOutput(t, server, 64, "sidekeeper: --token is required: take it from `sidekeeper lock show orders`\n", as...)
	wantOutput(t, server, 64, "sidekeeper: --reason is required: it says why, to the holder and in the audit\n",
		append(as[:5:5], "--token", "42")...)
}

func TestLockBreakSaysForWhatItWaits(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	for limit, flags := range map[string][]string{"until the holder's lease has expired": nil, "20s": {"--force-after", "20s"}} {
		said, complaints := io.Pipe()
		server.Break = func(context.Context, *lockv1.BreakRequest) (*lockv1.BreakResponse, error) {
			lines := bufio.NewReader(said)
			line, err := lines.ReadString('\n')
			if want := "sidekeeper: waiting for the holder's sidecar, at most " + limit + "\n"; line != want {
				t.Errorf("it says %q, want %q", line, want)
			}
			go io.Copy(io.Discard, lines)
			return &lockv1.BreakResponse{}, err
		}
		as := []string{"lock", "break", "orders", "--operator-address", server.Target, "--reason", "stuck", "--token", "42"}
		if code := run(t.Context(), append(as, flags...), strings.NewReader(""), io.Discard, complaints); code != 0 {
			t.Errorf("exit %d", code)
		}
		complaints.Close()
	}
}

func TestLeasesListsWhatEachHolds(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Leases = func(context.Context, *leasev1.ListRequest) (*leasev1.ListResponse, error) {
		return &leasev1.ListResponse{Leases: []*leasev1.Lease{{
			Owner: "billing", Identity: "uid:8", State: leasev1.State_STATE_SUSPENDED, Age: durationpb.New(time.Hour),
			ValidFor: durationpb.New(4 * time.Second), Ttl: durationpb.New(15 * time.Second),
			Possessions: []*leasev1.Possession{
				{Kind: "lock", Name: "orders", Held: true}, {Kind: "lock", Name: "users"},
			},
		}}}, nil
	}
	wantOutput(t, server, 0, ""+
		"OWNER    IDENTITY  STATE      AGE     VALID  TTL  HOLDS                              METADATA\n"+
		"billing  uid:8     suspended  1h0m0s  4s     15s  lock orders, lock users (waiting)  -\n", "leases")
}

func TestHealthTellsTheProcessFromTheEnsembleByItsExitCode(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Health.SetServingStatus("sidekeeper.readiness", healthv1.HealthCheckResponse_NOT_SERVING)
	wantOutput(t, server, 0, "serving\n", "health")
	wantOutput(t, server, 69, "sidekeeper: not serving\n", "health", "--ready")
	wantOutput(t, server, 69, `{"serving":false}`+"\n", "health", "--ready", "-o", "json")
	server.Health.SetServingStatus("sidekeeper.readiness", healthv1.HealthCheckResponse_SERVING)
	wantOutput(t, server, 0, "serving\n", "health", "--ready")
}

func TestVersionNamesTheToolchain(t *testing.T) {
	t.Parallel()
	stdout, _, code := output(t, "version", "-o", "json")
	var built struct{ Version, Revision, Go string }
	if err := json.Unmarshal([]byte(stdout), &built); err != nil || code != 0 || built.Go != runtime.Version() || built.Version == "" {
		t.Errorf("%s %v %d", stdout, err, code)
	}
	line, _, _ := output(t, "version")
	if stdout, _, code := output(t, "--version"); stdout != line || code != 0 || !strings.HasPrefix(line, "sidekeeper ") {
		t.Errorf("--version: exit %d, %q; version: %q", code, stdout, line)
	}
}

func TestASidecarThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none")
	stdout, stderr, code := output(t, "--address", path, "lock", "ls")
	want := fmt.Sprintf("sidekeeper: cannot reach the sidecar at %s: dial unix %s: connect: no such file or directory\n",
		path, path)
	if code != 69 || stdout != "" || stderr != want {
		t.Errorf("%d %q", code, stderr)
	}
	if _, stderr, code = output(t, "--address", path, "lock", "run", "orders", "--", "true"); code != 69 {
		t.Errorf("%d %q", code, stderr)
	}
}

func TestWhereTheAddressOfAnAbsentSidecarIsFromIsTold(t *testing.T) {
	none := "unix://" + filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		variable string // of both kinds of address
		command  []string
		says     string
	}{
		{"", []string{"lock", "ls"}, "sidekeeper.sock (the default: if it listens elsewhere, give --address or SIDEKEEPER_ADDRESS): "},
		{
			"",
			[]string{"lock", "break", "orders", "--token=1", "--reason=test"},
			"operator.sock (the default: if it listens elsewhere, give --operator-address or SIDEKEEPER_OPERATOR_ADDRESS): ",
		},
		{"SIDEKEEPER_ADDRESS", []string{"lock", "run", "orders", "--try", "--", "true"}, none + " (of SIDEKEEPER_ADDRESS): "},
		{"SIDEKEEPER_OPERATOR_ADDRESS", []string{"schedule", "rm", "daily"}, none + " (of SIDEKEEPER_OPERATOR_ADDRESS): "},
		{"SIDEKEEPER_ADDRESS", []string{"lock", "ls", "--address", none}, none + ": "},
	} {
		t.Setenv("SIDEKEEPER_ADDRESS", "")
		t.Setenv("SIDEKEEPER_OPERATOR_ADDRESS", "")
		if c.variable != "" {
			t.Setenv(c.variable, none)
		}
		_, said, code := output(t, c.command...)
		if code != 69 || !strings.Contains(said, c.says) {
			t.Errorf("%v: exit %d, %q", c.command, code, said)
		}
	}
}

func TestASidecarThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Get = scripted.Frozen
	wantOutput(t, server, 69, "sidekeeper: the sidecar at "+server.Target+" does not answer in time\n",
		"lock", "show", "orders", "--timeout", "50ms")
}

func TestABadNameIsToldWithItsFieldAndRule(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.Get = func(context.Context, *lockv1.GetRequest) (*lockv1.GetResponse, error) {
		bad, err := status.New(codes.InvalidArgument, "INVALID_FIELD: name").WithDetails(
			&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
				{Field: "name", Description: "a segment is at most 64 bytes"},
			}})
		if err != nil {
			return nil, err
		}
		return nil, bad.Err()
	}
	wantOutput(t, server, 64, "sidekeeper: name: a segment is at most 64 bytes\n", "lock", "show", "x")
}

func TestWrongUseIsToldInOneLine(t *testing.T) {
	t.Parallel()
	for args, said := range map[string]string{
		"bogus": `unknown command "bogus" for "sidekeeper", which has agree, assign, barrier, completion, config, console, cron, dev, doctor, ` +
			"elect, groups, health, inject-webhook, leases, lock, members, once, queue, quota, schedule, semaphore, seq, serve, top, version",
		"lock bogus": `unknown command "bogus" for "sidekeeper lock", ` +
			"which has break, claim, extend, ls, release, revoke, run, show, why",
		"lock show":                                        "usage: sidekeeper lock show NAME",
		"lock ls --bogus":                                  "unknown flag: --bogus",
		"lock ls -o xml":                                   `--output is "xml": must be one of table|json`,
		"lock run a --wait -1s -- true":                    `--wait is "-1s": a duration from 0s, such as 1m30s`,
		"lock run a b --once k -- c":                       "--once: only with one lock, and without --mode and --lock-delay",
		"lock run a --mode read --once k -- c":             "--once: only with one lock, and without --mode and --lock-delay",
		"lock run a --lock-delay 1s --once k -- c":         "--once: only with one lock, and without --mode and --lock-delay",
		"lock run a --once= -- c":                          "--once: the key is empty",
		"lock run a --keep 1h -- c":                        "--keep and --on-loss: only with --once",
		"lock run a --once k --keep 999ms -- c":            `--keep is "999ms": a duration from 1s to 8784h0m0s`,
		"lock run a --once k --on-loss again -- c":         `--on-loss is "again": must be one of retry|skip`,
		"assign run a":                                     "usage: sidekeeper assign run SET -- COMMAND [ARGUMENT...]",
		"assign run a --capacity 2001 -- c":                `--capacity is "2001": a whole number from 0 to 2000`,
		"assign run a --kill-grace -1s -- c":               `--kill-grace is "-1s": a duration from 0s, such as 1m30s`,
		"assign define a":                                  "either --count or ITEMs are required, and not both",
		"assign define a b --count 2":                      "either --count or ITEMs are required, and not both",
		"assign define a --count 2001":                     `--count is "2001": a whole number from 1 to 2000`,
		"assign define":                                    "usage: sidekeeper assign define SET [ITEM...]",
		"assign capacity a b c":                            `N is "c": a whole number from 0 to 2000`,
		"once forget a b --wait 25h":                       `--wait is "25h": a duration from 0s to 24h0m0s`,
		"lock run a b --lock-delay 1s -- c":                "--lock-delay: only with one lock",
		"lock run a --lock-delay 61s -- b":                 `--lock-delay is "61s": a duration from 0s to 1m0s`,
		"lock break a --token abc":                         `--token is "abc": a whole number from 1`,
		"semaphore create s -1":                            "-1 is no flag: a negative number comes after --",
		"semaphore run s --permits 65 -- a":                `--permits is "65": a whole number from 1 to 64`,
		"queue put q --priority 3000000000":                `--priority is "3000000000": a whole number of 32 bits`,
		"seq next s -n 3000000000":                         `--count is "3000000000": a whole number from 1 to 1000000`,
		"seq create s --first 1.5":                         `--first is "1.5": a whole number of 64 bits`,
		"agree begin a --deadline 0s":                      `--deadline is "0s": a duration from 1ms to 1h0m0s`,
		"lock ls --timeout 0":                              `--timeout is "0": a duration from 1ms, such as 1m30s`,
		"dev --ensemble-port 65536":                        `--ensemble-port is "65536": a whole number from 0 to 65535`,
		"dev --listen unix:///none/s":                      `--listen is "unix:///none/s": the path of a socket in a folder that is there`,
		"dev --admin-listen unix:///none/s":                `--admin-listen is "unix:///none/s": the path of a socket in a folder that is there`,
		"serve --trace-ratio few":                          `--trace-ratio is "few": a number`,
		"serve --strict=perhaps":                           `--strict is "perhaps": true or false`,
		"serve --heartbeat 2":                              `--heartbeat is "2": a duration, such as 5s or 1m30s`,
		"lock run orders true":                             "usage: sidekeeper lock run NAME... -- COMMAND [ARGUMENT...]",
		"lock run -- true":                                 "usage: sidekeeper lock run NAME... -- COMMAND [ARGUMENT...]",
		"lock run a --try --wait 1s -- true":               "--try and --wait exclude each other",
		"semaphore run s --quarantine 1m -- a":             "--quarantine: only with --numbered",
		"semaphore run s --numbered --permits 2 -- a":      "--numbered: only with one permit",
		"semaphore run s --numbered --quarantine 25h -- a": `--quarantine is "25h": a duration from 0s to 24h0m0s`,
		"--address example.org:1 lock ls": "sidecar example.org:1: an address that is neither a Unix socket nor loopback " +
			"needs TLS",
		"--tls-ca /nonexistent lock ls": "--tls-ca: open /nonexistent: no such file or directory",
		"--tls-cert a.pem lock ls":      "--tls-cert and --tls-key go together: both or none",
		"--tls-key a.pem lock ls":       "--tls-cert and --tls-key go together: both or none",
	} {
		stdout, stderr, code := output(t, strings.Fields(args)...)
		if code != 64 || stdout != "" || stderr != "sidekeeper: "+said+"\n" {
			t.Errorf("%s: %d %q %q", args, code, stdout, stderr)
		}
	}
}

func TestNoCommandLeavesItToItsReaderHowItIsCalled(t *testing.T) {
	t.Parallel()
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		err := command.ValidateArgs(make([]string, 99))
		if err != nil && (strings.Contains(err.Error(), "arg(s)") || strings.HasSuffix(err.Error(), command.CommandPath()+`"`)) {
			t.Errorf("%s: %v", command.CommandPath(), err)
		}
		for _, below := range command.Commands() {
			walk(below)
		}
	}
	walk(newRootCommand(&reach{}))
}

func TestAGroupOfCommandsShowsItsHelpAsAnError(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := output(t, "lock")
	if code != 64 || stdout != "" || !strings.Contains(stderr, "Available Commands") ||
		!strings.HasSuffix(stderr, "sidekeeper: missing subcommand\n") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

func TestShellsCompleteTheNamesOfLocks(t *testing.T) {
	t.Parallel()
	server := scripted.Start(t)
	server.List = func(context.Context, *lockv1.ListRequest) (*lockv1.ListResponse, error) {
		return &lockv1.ListResponse{Locks: []*lockv1.Lock{{Name: "orders"}, {Name: "pay$(touch x)"}, {Name: "users"}}}, nil
	}
	stdout, _, code := output(t, "__complete", "--address", server.Target, "lock", "show", "")
	if code != 0 || !strings.HasPrefix(stdout, "orders\nusers\n") {
		t.Errorf("%d %q", code, stdout)
	}
}
