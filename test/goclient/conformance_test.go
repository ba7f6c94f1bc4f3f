package goclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A scenario is one of clients/conformance/scenarios.yaml, where the steps are explained.
type scenario struct {
	Name   string
	Only   []string // the languages whose clients it is for; none, all
	Leases string   // seconds
	Steps  []step
}

type step struct {
	Do, Expect, As, Of, Than, Client string
	Error                            *string
	Code, Field, Reason              string
	Certificate, Authority           string
	Address                          *string
	Says, Flags, Policy              string
	Later, All                       bool
	Within, After, For               float64
	Wait, Grace, TTL                 *float64
	SuspensionGrace                  *float64 `yaml:"suspension grace"`
	DetectDeadlock                   bool     `yaml:"detect deadlock"`
	Lock, Lease, Mode, Owner         string
	Sequence, Barrier                string
	First, Last                      int64
	Count, Ahead                     int32
	Group, Member, Set               string
	OnConflict                       string `yaml:"on conflict"`
	Semaphore                        string
	Numbered                         bool
	Quarantine                       *float64
	Key, Value, If, Prefix           string
	Work, Per, Outcome               string
	OnLoss                           string `yaml:"on loss"`
	OnFailure                        string `yaml:"on failure"`
	Attempts                         int
	Schedule, Run, Note              string
	Locks                            []string
	Election, Candidate, To          string
	Size, Position, Number, Times    int
	Is                               any
	Are                              []string
}

// What `make skew` has tried: an older sidecar, and what was asked of it then.
var (
	given    = flag.String("sidecar", "", "the `program` to play with; empty builds that of this tree")
	orderly  = flag.Bool("orderly", false, "stop each sidecar in order when its scenario is over and its clients are closed, and do not kill it")
	playlist = flag.String("scenarios", "../../clients/conformance/scenarios.yaml", "the `file` with the scenarios")
)

func TestConformance(t *testing.T) {
	full.Needs(t, "the sidecar's program, built anew")
	all := scenarios(t)
	if len(all) < 40 {
		t.Fatalf("%d scenarios", len(all))
	}
	program, nursery := buildSidecar(t)
	for _, played := range all {
		if played.Only != nil && !slices.Contains(played.Only, "go") {
			continue
		}
		t.Run(played.Name, func(t *testing.T) {
			s := newStage(t, program, nursery, "--session-timeout", cmp.Or(played.Leases, "4")+"s")
			for _, step := range played.Steps {
				s.play(step)
			}
		})
	}
}

// scenarios reads them all.
func scenarios(t testing.TB) (all []scenario) {
	t.Helper()
	text, err := os.ReadFile(*playlist)
	must(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&all))
	return all
}

// buildSidecar builds the program unless one is given, and makes what sidecars are started with.
func buildSidecar(t testing.TB) (program string, nursery *process.Nursery) {
	t.Helper()
	nursery = process.NewNursery()
	t.Cleanup(nursery.Close)
	if *given != "" {
		return *given, nursery
	}
	program = filepath.Join(t.TempDir(), "sidekeeper")
	if output, err := exec.Command("go", "build", "-o", program, "../../cmd/sidekeeper").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program, nursery
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A claim is what locks, leases and memberships have in common.
type claim interface {
	Valid() bool
	ValidFor() time.Duration
	Suspended() bool
	Err() error
	Done() <-chan struct{}
}

// A releaser is a lock, or several.
type releaser interface {
	Release(ctx context.Context) error
}

// A leaver is a membership, or an entry of a double barrier.
type leaver interface {
	Leave(ctx context.Context) error
}

// A stage plays one scenario with a sidecar of its own.
type stage struct {
	t       testing.TB
	program string
	flags   []string // of the sidecar, after those of every one
	folder  string
	address string
	served  string // where the sidecar listens that was served last
	nursery *process.Nursery
	sidecar *process.Process
	dev     devv1.DevServiceClient

	schedules schedulev1.ScheduleServiceClient
	sets      assignmentv1.AssignmentServiceClient

	clients map[string]*sidekeeper.Client
	claims  map[string]claim
	stand   map[string]*sidekeeper.Claim
	pending map[string]*pending
	jobs    map[string]*job
	views   map[string]*sidekeeper.ConfigView
	works   *floor // of those that share sets

	commands map[string]func() // see how a command that runs ends

	mu          sync.Mutex
	positions   map[string]int
	waiting     map[string]int
	ahead       map[string]map[string]int
	leaders     map[string]string
	shown       map[string]string // by watches: fresh or stale
	revocations map[string]sidekeeper.Revocation
}

// pending is a claim that is waited for in the background.
type pending struct {
	cancel context.CancelFunc
	result chan made
}

// made is what asking for a claim has come to.
type made struct {
	claim claim
	err   error
}

// A job runs in the background: a body, a leader, a member that stays.
type job struct {
	mu     sync.Mutex
	times  int
	why    error                           // with which its context ended
	held   atomic.Pointer[sidekeeper.Lock] // the newest, of one that runs under a lock
	finish chan struct{}                   // closed when it may end
	done   chan error
}

func newStage(t testing.TB, program string, nursery *process.Nursery, flags ...string) *stage {
	t.Helper()
	folder, err := os.MkdirTemp("", "sk") // short, since the path of a Unix socket is
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &stage{
		t: t, program: program, flags: flags, folder: folder, address: "unix://" + folder + "/s.sock", nursery: nursery,
		clients: map[string]*sidekeeper.Client{}, claims: map[string]claim{}, stand: map[string]*sidekeeper.Claim{},
		pending: map[string]*pending{}, jobs: map[string]*job{},
		views: map[string]*sidekeeper.ConfigView{}, positions: map[string]int{}, waiting: map[string]int{}, leaders: map[string]string{},
		shown: map[string]string{}, works: newFloor(), commands: map[string]func(){},
		ahead:       map[string]map[string]int{},
		revocations: map[string]sidekeeper.Revocation{},
	}
	s.start()
	t.Cleanup(func() {
		if !*orderly {
			s.sidecar.Kill()
		}
		for _, client := range s.clients {
			client.Close()
		}
		for _, view := range s.views {
			view.Close()
		}
		if *orderly && s.sidecar.Running() {
			s.sidecar.Send(syscall.SIGTERM)
			s.sidecar.Continue()
			receive(t, s.sidecar.Exited())
		}
	})
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { connection.Close() })
	s.dev = devv1.NewDevServiceClient(connection)
	s.schedules = schedulev1.NewScheduleServiceClient(connection)
	s.sets = assignmentv1.NewAssignmentServiceClient(connection)
	return s
}

// start starts the sidecar, with an ensemble that is empty.
func (s *stage) start() {
	s.t.Helper()
	s.sidecar = s.startAt(s.address, s.folder+"/own")
}

// startAt starts a sidecar that makes certificates in a folder. What it says goes to a file beside that.
func (s *stage) startAt(address, certificates string) *process.Process {
	s.t.Helper()
	said, err := os.Create(certificates + ".said")
	must(s.t, err)
	command := exec.Command(s.program, "dev", "--listen", "127.0.0.1:0", "--listen", address,
		"--tls-folder", certificates, "--log-level", "error", "--session-timeout", "4s")
	command.Args = append(command.Args, s.flags...)
	command.Stdout, command.Stderr = said, os.Stderr
	command.Env = append(os.Environ(), "TMPDIR="+s.folder) // for what it leaves when it is killed
	sidecar, err := s.nursery.Start(command, said)
	must(s.t, err)
	s.until(step{}, func() bool {
		text, err := os.ReadFile(said.Name())
		return err == nil && strings.Contains(string(text), "Ctrl-C here stops it")
	})
	return sidecar
}

var overTCP = regexp.MustCompile(`callers: .* (127\.0\.0\.1:\d+)`)

// connect makes a client over TCP.
func (s *stage) connect(of step) {
	s.t.Helper()
	if of.Authority == "" {
		s.connectPlainly(of)
		return
	}
	if of.Authority == "foreign" || of.Certificate == "foreign" {
		s.startAt("unix://"+s.folder+"/f.sock", s.folder+"/foreign").Kill()
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	authority, err := os.ReadFile(s.folder + "/" + of.Authority + "/ca.pem")
	must(s.t, err)
	config.RootCAs.AppendCertsFromPEM(authority)
	if of.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.pair(of))
		must(s.t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	client, err := sidekeeper.Dial(s.at(of), sidekeeper.WithTLS(config))
	must(s.t, err)
	s.clients[of.Client] = client
}

func (s *stage) client(of step) *sidekeeper.Client {
	s.t.Helper()
	if s.clients[of.Client] == nil {
		client, err := sidekeeper.Dial(s.address)
		must(s.t, err)
		s.clients[of.Client] = client
	}
	return s.clients[of.Client]
}

func (s *stage) play(next step) {
	s.t.Helper()
	verbs, verb := doing, next.Do
	if verb == "" {
		verbs, verb = expecting, next.Expect
	}
	play := verbs[verb]
	if play == nil {
		s.t.Fatalf("nobody knows what %q is", verb)
	}
	play(s, next)
}

// ended sees that what was done ended as it must.
func (s *stage) ended(of step, err error) {
	s.t.Helper()
	if of.Error == nil {
		if err != nil {
			s.t.Fatalf("%s: %v", of.Do, err)
		}
		return
	}
	if err == nil {
		s.t.Fatalf("%s does not fail with %s", of.Do, *of.Error)
	}
	of.Reason = *of.Error
	s.isError(of, err)
}

func (s *stage) isError(of step, err error) {
	s.t.Helper()
	if of.Reason == "SUSPENDED" {
		if !errors.Is(err, sidekeeper.ErrSuspended) {
			s.t.Fatal(err)
		}
		return
	}
	told, is := errors.AsType[*sidekeeper.Error](err)
	if !is {
		s.t.Fatalf("%v is no error of a sidecar", err)
	}
	code := strings.ToUpper(told.Code.String())
	if told.Reason != of.Reason || of.Code != "" && code != of.Code {
		s.t.Fatalf("%v, not %s %s", err, of.Code, of.Reason)
	}
	if of.Field != "" && (len(told.Fields) != 1 || told.Fields[0].Field != of.Field) {
		s.t.Fatalf("it tells of the fields %v, not of %s", told.Fields, of.Field)
	}
	_, text, _ := strings.Cut(told.Error(), ": ")
	s.says(of, text, false)
}

// until returns when something has happened, in the time that the step allows.
func (s *stage) until(of step, happened func() bool) {
	s.t.Helper()
	began := time.Now()
	within := patience
	if of.Within > 0 {
		within = seconds(of.Within)
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !happened() {
		if time.Since(began) > within {
			s.t.Fatalf("%s %s: not within %v", of.Expect, of.Of, within)
		}
		<-look.C
	}
	if time.Since(began) < seconds(of.After) {
		s.t.Fatalf("%s %s: after %v already", of.Expect, of.Of, time.Since(began))
	}
}

func ownerOf(leader *sidekeeper.Contender) string {
	if leader == nil {
		return ""
	}
	return leader.Owner
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

func optional(number *float64) *time.Duration {
	if number == nil {
		return nil
	}
	return new(seconds(*number))
}

// locked does something while nobody else looks at what functions have been called with.
func (s *stage) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *stage) lockOptions(of step) sidekeeper.LockOptions {
	options := sidekeeper.LockOptions{Owner: of.Owner, Wait: optional(of.Wait), SuspensionGrace: optional(of.SuspensionGrace)}
	switch of.Mode {
	case "read":
		options.Mode = sidekeeper.Read
	case "write":
		options.Mode = sidekeeper.Write
	}
	options.Lease, options.DetectDeadlock = s.lease(of), of.DetectDeadlock
	options.OnQueued = func(queued sidekeeper.Queued) { s.locked(func() { s.positions[of.As] = queued.Position }) }
	options.OnRevocation = func(asked sidekeeper.Revocation) { s.locked(func() { s.revocations[of.As] = asked }) }
	return options
}

func (s *stage) allOptions(of step) sidekeeper.AllOptions {
	one := s.lockOptions(of)
	return sidekeeper.AllOptions{
		Lease: one.Lease, Wait: one.Wait, Owner: one.Owner, OnRevocation: one.OnRevocation,
		OnQueued: func(ahead map[string]int) { s.locked(func() { s.ahead[of.As] = ahead }) },
	}
}

func (s *stage) onceOptions(of step) sidekeeper.OnceOptions {
	lock := s.lockOptions(of)
	return sidekeeper.OnceOptions{
		PerName: of.Per == "name", SkipLost: of.OnLoss == "skip", SkipFailed: of.OnFailure == "skip", MaxAttempts: of.Attempts,
		Lease: lock.Lease, Wait: lock.Wait, Owner: lock.Owner, OnQueued: lock.OnQueued,
	}
}

func wanted(of step) (locks []sidekeeper.WantedLock) {
	for _, name := range of.Locks {
		locks = append(locks, sidekeeper.WantedLock{Name: name})
	}
	return locks
}

// tokenOf is that of a lock, of one of several, of a term, or of an attempt at work of either kind.
func tokenOf(held claim, name string) int64 {
	switch held := held.(type) {
	case *sidekeeper.Locks:
		return held.FencingToken(name)
	case *sidekeeper.Leadership:
		return held.Term().FencingToken
	case attempt:
		return held.FencingToken()
	default:
		return held.(*sidekeeper.Lock).FencingToken()
	}
}

// An attempt is one at work that is done once, or at a tick of a schedule.
type attempt interface {
	Number() int
	FencingToken() int64
	Finish(ctx context.Context, outcome sidekeeper.Outcome, note string) error
}

// history is what became of a schedule's runs, the newest first.
func (s *stage) history(schedule string) (told []string) {
	s.t.Helper()
	history, err := s.schedules.History(s.t.Context(), &schedulev1.HistoryRequest{Name: schedule})
	must(s.t, err)
	for _, of := range history.GetOutcomes() {
		state := strings.ToLower(strings.TrimPrefix(of.GetState().String(), "STATE_"))
		one := fmt.Sprintf("%s %s %d: %s", of.GetRunId(), state, of.GetAttempt(), of.GetNote())
		told = append(told, strings.TrimSuffix(one, ": "))
	}
	return told
}

// shown is how an observation is told.
func shown(observed *sidekeeper.Observation) string {
	switch leader := observed.Leader; {
	case leader == nil:
		return ""
	case leader.Value == "":
		return leader.Candidate
	default:
		return leader.Candidate + " at " + leader.Value
	}
}

func (s *stage) lease(of step) *sidekeeper.Lease {
	lease, _ := s.claims[of.Lease].(*sidekeeper.Lease)
	return lease
}

// ask asks for a claim, in the background if it is for later.
func (s *stage) ask(of step, call func(context.Context, *sidekeeper.Client) (claim, error)) {
	s.t.Helper()
	client := s.client(of)
	if !of.Later {
		claim, err := call(s.t.Context(), client)
		s.ended(of, err)
		s.claims[of.As] = claim
		return
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	result := make(chan made, 1)
	s.pending[of.As] = &pending{cancel, result}
	go func() {
		claim, err := call(ctx, client)
		result <- made{claim, err}
	}()
}

var doing = map[string]func(*stage, step){
	"acquire": func(s *stage, of step) {
		options := s.lockOptions(of)
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.Acquire(ctx, of.Lock, options)
		})
	},
	"acquire all": func(s *stage, of step) {
		options := s.allOptions(of)
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.AcquireAll(ctx, wanted(of), options)
		})
	},
	"campaign": func(s *stage, of step) {
		options := sidekeeper.CampaignOptions{Candidate: of.Candidate, Value: of.Value, Wait: optional(of.Wait)}
		options.OnCandidate = func(position int, _ *sidekeeper.Leader) { s.locked(func() { s.positions[of.As] = position }) }
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.Campaign(ctx, of.Election, options)
		})
	},
	"claim": func(s *stage, of step) {
		options := sidekeeper.ClaimOptions{ReserveFor: seconds(of.For), Reason: "a test", Wait: optional(of.Wait), Owner: of.Owner}
		if of.Of != "" {
			options.ID = s.stand[of.Of].ID()
		}
		claim, err := s.client(of).Claim(s.t.Context(), of.Lock, options)
		s.ended(of, err)
		s.stand[of.As] = claim
	},
	"extend":    func(s *stage, of step) { s.ended(of, s.stand[of.Of].Extend(s.t.Context(), seconds(of.For))) },
	"end claim": func(s *stage, of step) { s.ended(of, s.stand[of.Of].Release(s.t.Context())) },
	"resign":    func(s *stage, of step) { s.ended(of, s.claims[of.Of].(*sidekeeper.Leadership).Resign(s.t.Context())) },
	"proclaim": func(s *stage, of step) {
		s.ended(of, s.claims[of.Of].(*sidekeeper.Leadership).Proclaim(s.t.Context(), of.Value))
	},
	"transfer": func(s *stage, of step) {
		options := sidekeeper.TransferOptions{Reason: of.Reason}
		s.ended(of, s.client(of).TransferLeadership(s.t.Context(), of.Election, of.To, options))
	},
	"connect": (*stage).connect,
	"serve":   (*stage).serve,
	"command": (*stage).command,
	"cancel": func(s *stage, of step) {
		s.pending[of.Of].cancel()
		if got := <-s.pending[of.Of].result; !errors.Is(got.err, context.Canceled) {
			s.t.Fatal(got.err)
		}
	},
	"release": func(s *stage, of step) { s.ended(of, s.claims[of.Of].(releaser).Release(s.t.Context())) },
	"begin": func(s *stage, of step) {
		options := s.onceOptions(of)
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.Begin(ctx, of.Work, of.Key, options)
		})
	},
	"finish attempt": func(s *stage, of step) {
		outcome := map[string]sidekeeper.Outcome{"succeeded": sidekeeper.Succeeded, "failed": sidekeeper.Failed}[of.Outcome]
		s.ended(of, s.claims[of.Of].(attempt).Finish(s.t.Context(), outcome, of.Note))
	},
	"put schedule": func(s *stage, of step) {
		_, err := s.schedules.Put(s.t.Context(), &schedulev1.PutRequest{Name: of.Schedule, Cron: "0 0 29 2 *"})
		must(s.t, err)
	},
	"run schedule": func(s *stage, of step) {
		_, err := s.schedules.Run(s.t.Context(), &schedulev1.RunRequest{Name: of.Schedule, Id: of.Run})
		must(s.t, err)
	},
	"work": func(s *stage, of step) {
		lock := s.lockOptions(of)
		options := sidekeeper.WorkOptions{Lease: lock.Lease, Wait: lock.Wait, Owner: lock.Owner, OnQueued: lock.OnQueued}
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.Work(ctx, of.Schedule, options)
		})
	},
	"define set": func(s *stage, of step) {
		_, err := s.sets.Define(s.t.Context(), &assignmentv1.DefineRequest{Set: of.Set, Count: of.Count})
		must(s.t, err)
	},
	"share": (*stage).share,
	"create semaphore": func(s *stage, of step) {
		s.ended(of, s.client(of).CreateSemaphore(s.t.Context(), of.Semaphore, int(of.Count)))
	},
	"acquire permit": func(s *stage, of step) {
		options := sidekeeper.PermitsOptions{Numbered: of.Numbered, Quarantine: optional(of.Quarantine), Wait: optional(of.Wait)}
		options.OnQueued = func(position int) { s.locked(func() { s.positions[of.As] = position }) }
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.AcquirePermits(ctx, of.Semaphore, options)
		})
	},
	"open lease": func(s *stage, of step) {
		options := sidekeeper.LeaseOptions{Wait: optional(of.Wait)}
		if of.TTL != nil {
			options.TTL = seconds(*of.TTL)
		}
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.OpenLease(ctx, options)
		})
	},
	"close lease": func(s *stage, of step) { s.ended(of, s.claims[of.Of].(*sidekeeper.Lease).Close(s.t.Context())) },
	"close":       func(s *stage, of step) { must(s.t, s.client(of).Close()) },
	"expire": func(s *stage, of step) {
		request := &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: of.Lock}}
		if of.All {
			request.Leases = &devv1.ExpireLeaseRequest_All{All: true}
		}
		_, err := s.dev.ExpireLease(s.t.Context(), request)
		must(s.t, err)
	},
	"suspend": func(s *stage, of step) {
		_, err := s.dev.Suspend(s.t.Context(), &devv1.SuspendRequest{Duration: durationpb.New(seconds(of.For))})
		must(s.t, err)
	},
	"freeze":  func(s *stage, _ step) { s.sidecar.Freeze() },
	"thaw":    func(s *stage, _ step) { s.sidecar.Continue() },
	"kill":    func(s *stage, _ step) { s.sidecar.Kill() },
	"stop":    func(s *stage, _ step) { s.sidecar.Send(syscall.SIGTERM) },
	"restart": func(s *stage, _ step) { s.start() },
	"pause": func(_ *stage, of step) {
		timer := time.NewTimer(seconds(of.For))
		<-timer.C
	},
	"revoke": func(s *stage, of step) {
		_, err := s.client(of).Revoke(s.t.Context(), of.Lock, sidekeeper.RevokeOptions{Reason: of.Reason, Grace: optional(of.Grace)})
		s.ended(of, err)
	},
	"break": func(s *stage, of step) {
		operator, err := sidekeeper.Dial(s.address, sidekeeper.WithoutRepetition())
		must(s.t, err)
		defer operator.Close()
		ctx, cancel := context.WithTimeout(s.t.Context(), seconds(of.Within))
		defer cancel()
		view, err := operator.Get(ctx, of.Lock)
		must(s.t, err)
		_, err = operator.Break(ctx, of.Lock, view.Holders[0].FencingToken, sidekeeper.BreakOptions{Reason: "stuck"})
		s.ended(of, err)
	},
	"run": func(s *stage, of step) {
		if of.Locks != nil {
			s.begin(of, func(ctx context.Context, body func(context.Context, *sidekeeper.Lock) error) error {
				return s.client(of).WithLocks(ctx, wanted(of), s.allOptions(of), func(ctx context.Context, _ *sidekeeper.Locks) error {
					return body(ctx, nil)
				})
			})
			return
		}
		if of.Work != "" {
			s.begin(of, func(ctx context.Context, body func(context.Context, *sidekeeper.Lock) error) error {
				_, err := s.client(of).Once(ctx, of.Work, of.Key, s.onceOptions(of), func(ctx context.Context, _ *sidekeeper.Attempt) error {
					return body(ctx, nil)
				})
				return err
			})
			return
		}
		s.begin(of, func(ctx context.Context, body func(context.Context, *sidekeeper.Lock) error) error {
			return s.client(of).WithLock(ctx, of.Lock, s.lockOptions(of), body)
		})
	},
	"lead": func(s *stage, of step) {
		s.begin(of, func(ctx context.Context, body func(context.Context, *sidekeeper.Lock) error) error {
			return s.client(of).RunWhileLeader(ctx, of.Lock, s.lockOptions(of), body)
		})
	},
	"observe": func(s *stage, of step) {
		ctx, cancel := context.WithCancel(s.t.Context())
		if of.Election != "" {
			observed := s.client(of).Observe(ctx, of.Election)
			s.inBackground(cancel, func() {
				for seen, err := range observed {
					if err == nil {
						s.locked(func() { s.leaders[of.As] = "leader " + shown(seen) })
					}
				}
			})
			return
		}
		leaders := s.client(of).WatchLeader(ctx, of.Lock)
		s.inBackground(cancel, func() {
			for leader, err := range leaders {
				if err == nil {
					s.locked(func() { s.leaders[of.As] = "leader " + ownerOf(leader) })
				}
			}
		})
	},
	"stay joined": func(s *stage, of step) {
		j := newJob()
		s.jobs[of.As] = j
		ctx, cancel := context.WithCancel(s.t.Context())
		client := s.client(of)
		s.inBackground(cancel, func() {
			defer close(j.done)
			joined := func(*sidekeeper.Membership) { j.run(nil) }
			stayed := client.StayJoined(ctx, of.Group, of.Member, sidekeeper.JoinOptions{}, joined)
			if !errors.Is(stayed, context.Canceled) {
				s.t.Error(stayed)
			}
		})
		go func() {
			<-j.finish
			cancel()
		}()
		s.t.Cleanup(j.end)
		s.until(of, func() bool { return j.ran() == 1 })
	},
	"finish": func(s *stage, of step) { s.jobs[of.Of].end() },
	"create": func(s *stage, of step) {
		_, err := s.client(of).Sequence(of.Sequence).Create(s.t.Context(), of.First)
		s.ended(of, err)
	},
	"next": func(s *stage, of step) {
		number, err := s.client(of).Sequence(of.Sequence).Next(s.t.Context())
		s.ended(of, err)
		if err == nil && fmt.Sprint(number) != fmt.Sprint(of.Is) {
			s.t.Fatalf("%d, not %v", number, of.Is)
		}
	},
	"range": func(s *stage, of step) {
		numbers, err := s.client(of).Sequence(of.Sequence).NextRange(s.t.Context(), of.Count)
		s.ended(of, err)
		if numbers.First != of.First || numbers.Last != of.Last {
			s.t.Fatalf("%d to %d", numbers.First, numbers.Last)
		}
	},
	"take": func(s *stage, of step) {
		taken := map[int64]bool{}
		for number, err := range s.client(of).Sequence(of.Sequence).Each(s.t.Context(), of.Ahead) {
			must(s.t, err)
			if taken[number] {
				s.t.Fatalf("%d twice", number)
			}
			if taken[number] = true; len(taken) == int(of.Count) {
				return
			}
		}
	},
	"join": func(s *stage, of step) {
		conflicts := map[string]sidekeeper.OnConflict{"wait": sidekeeper.WaitForMember, "replace": sidekeeper.ReplaceMember}
		options := sidekeeper.JoinOptions{Lease: s.lease(of), OnConflict: conflicts[of.OnConflict], Wait: optional(of.Wait)}
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.Join(ctx, of.Group, of.Member, options)
		})
	},
	"leave": func(s *stage, of step) { s.carryOut(of, s.claims[of.Of].(leaver).Leave) },
	"enter": func(s *stage, of step) {
		options := sidekeeper.BarrierOptions{Lease: s.lease(of), Wait: optional(of.Wait)}
		options.OnWaiting = func(present int) { s.locked(func() { s.waiting[of.As] = present }) }
		s.ask(of, func(ctx context.Context, client *sidekeeper.Client) (claim, error) {
			return client.EnterBarrier(ctx, of.Barrier, of.Size, options)
		})
	},
	"set barrier":    func(s *stage, of step) { s.ended(of, s.client(of).SetBarrier(s.t.Context(), of.Barrier)) },
	"remove barrier": func(s *stage, of step) { s.ended(of, s.client(of).RemoveBarrier(s.t.Context(), of.Barrier)) },
	"await barrier": func(s *stage, of step) {
		client := s.client(of)
		s.carryOut(of, func(ctx context.Context) error {
			return client.AwaitBarrier(ctx, of.Barrier, func() { s.locked(func() { s.waiting[of.As] = 0 }) })
		})
	},
	"put": func(s *stage, of step) {
		var conditions []sidekeeper.Precondition
		switch of.If {
		case "missing":
			conditions = append(conditions, sidekeeper.IfMissing())
		case "exists":
			conditions = append(conditions, sidekeeper.IfExists())
		}
		value := []byte(of.Value)
		if of.Size > 0 {
			value = make([]byte, of.Size)
		}
		_, err := s.client(of).Config().Put(s.t.Context(), of.Key, value, conditions...)
		s.ended(of, err)
	},
	"get": func(s *stage, of step) {
		entry, err := s.client(of).Config().GetLinearizable(s.t.Context(), of.Key)
		s.ended(of, err)
		if err == nil && string(entry.Value) != of.Is {
			s.t.Fatalf("%s, not %v", entry.Value, of.Is)
		}
	},
	"delete": func(s *stage, of step) { s.ended(of, s.client(of).Config().Delete(s.t.Context(), of.Key)) },
	"watch": func(s *stage, of step) {
		client := s.client(of)
		switch {
		case of.Lock != "":
			followView(s, of, client.Watch, of.Lock, func(view *sidekeeper.View) bool { return view.Stale })
		case of.Group != "":
			followView(s, of, client.WatchGroup, of.Group, func(change *sidekeeper.GroupChange) bool { return change.Stale })
		default:
			view, err := client.Config().View(s.t.Context(), of.Prefix)
			must(s.t, err)
			s.views[of.As] = view
		}
	},
}

// followView notes whether what a watch has shown may be out of date, as it may when the watch has ended. It is begun again then.
func followView[T any](s *stage, of step, watch func(context.Context, string) iter.Seq2[T, error], name string, isStale func(T) bool) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.inBackground(cancel, func() {
		for ctx.Err() == nil {
			for view, err := range watch(ctx, name) {
				stale := err != nil || isStale(view)
				s.locked(func() { s.shown[of.As] = map[bool]string{true: "stale", false: "fresh"}[stale] })
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
}

// isShown says whether a watch has shown something that is so.
func (s *stage) isShown(of step, how string) func() bool {
	return func() (is bool) {
		s.locked(func() { is = s.shown[of.Of] == how })
		return is
	}
}

func newJob() *job { return &job{finish: make(chan struct{}), done: make(chan error, 1)} }

// begin starts a job whose body waits until it is finished or its context ends.
func (s *stage) begin(of step, with func(context.Context, func(context.Context, *sidekeeper.Lock) error) error) {
	j := newJob()
	s.jobs[of.As] = j
	s.client(of)
	ctx, cancel := context.WithCancel(s.t.Context())
	s.inBackground(cancel, func() {
		j.done <- with(ctx, func(ctx context.Context, lock *sidekeeper.Lock) error {
			j.held.Store(lock)
			j.run(nil)
			select {
			case <-j.finish:
				return nil
			case <-ctx.Done():
				j.run(context.Cause(ctx))
				return context.Cause(ctx)
			}
		})
	})
}

// share has a member work on the items of a set until it is finished, or tells that it cannot.
func (s *stage) share(of step) {
	client := s.client(of)
	ctx, cancel := context.WithCancel(s.t.Context())
	work := func(ctx context.Context, item *sidekeeper.Item) error {
		s.works.enter(s.t, item.Set()+"/"+item.Name(), of.As)
		defer s.works.leave(item.Set() + "/" + item.Name())
		<-ctx.Done()
		return ctx.Err()
	}
	run := func() error { return client.Share(ctx, of.Set, work, sidekeeper.ShareOptions{Member: of.Member}) }
	if of.Error != nil {
		s.ended(of, run())
		cancel()
		return
	}
	j := newJob()
	s.jobs[of.As] = j
	s.inBackground(cancel, func() {
		if err := run(); errors.Is(err, context.Canceled) {
			j.done <- nil
		} else {
			j.done <- err
		}
	})
	go func() {
		<-j.finish
		cancel()
	}()
	s.t.Cleanup(j.end)
}

// carryOut does something, in the background if it is for later.
func (s *stage) carryOut(of step, do func(context.Context) error) {
	s.t.Helper()
	if !of.Later {
		s.ended(of, do(s.t.Context()))
		return
	}
	j := newJob()
	s.jobs[of.As] = j
	ctx, cancel := context.WithCancel(s.t.Context())
	s.inBackground(cancel, func() { j.done <- do(ctx) })
}

// inBackground does something that ends with cancel, at the end of the scenario at the latest.
func (s *stage) inBackground(cancel context.CancelFunc, do func()) {
	var running sync.WaitGroup
	running.Go(do)
	s.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// run notes that it has begun or, with an error, been stopped.
func (j *job) run(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.why = why; why == nil {
		j.times++
	}
}

func (j *job) ran() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.times
}

func (j *job) stopped() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.why
}

func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.finish:
	default:
		close(j.finish)
	}
}

var expecting = map[string]func(*stage, step){
	"valid": func(s *stage, of step) {
		if c := s.claims[of.Of]; !c.Valid() || c.Err() != nil {
			s.t.Fatalf("%s is valid for %v: %v", of.Of, c.ValidFor(), c.Err())
		}
	},
	"invalid": func(s *stage, of step) {
		if c := s.claims[of.Of]; c.Valid() || c.ValidFor() != 0 {
			s.t.Fatalf("%s is valid for %v", of.Of, c.ValidFor())
		}
	},
	"given up": func(s *stage, of step) {
		if c := s.claims[of.Of]; c.Valid() || c.Err() != nil {
			s.t.Fatalf("%s is valid for %v: %v", of.Of, c.ValidFor(), c.Err())
		}
	},
	"lost": func(s *stage, of step) {
		c := s.claims[of.Of]
		s.until(of, func() bool { return c.Err() != nil })
		if !errors.Is(c.Err(), sidekeeper.ErrLost) {
			s.t.Error(c.Err())
		}
		s.isError(of, c.Err())
		receive(s.t, c.Done())
	},
	"suspended": func(s *stage, of step) { s.until(of, s.claims[of.Of].Suspended) },
	"resumed":   func(s *stage, of step) { s.until(of, func() bool { return !s.claims[of.Of].Suspended() }) },
	"revocation": func(s *stage, of step) {
		var asked sidekeeper.Revocation
		s.until(of, func() (is bool) {
			s.locked(func() { asked, is = s.revocations[of.Of] })
			return is
		})
		if asked.Reason != of.Reason || asked.Deadline.IsZero() != (of.Grace == nil) {
			s.t.Fatalf("%+v", asked)
		}
		if of.Grace != nil && time.Until(asked.Deadline) > seconds(*of.Grace) {
			s.t.Fatalf("a deadline in %v", time.Until(asked.Deadline))
		}
	},
	"queued": func(s *stage, of step) {
		s.until(of, func() (is bool) {
			s.locked(func() {
				position, told := s.positions[of.Of]
				is = told && position == of.Position
			})
			return is
		})
	},
	"ahead": func(s *stage, of step) {
		s.until(of, func() (is bool) {
			s.locked(func() { is = fmt.Sprint(s.ahead[of.Of]) == fmt.Sprint(of.Is) })
			return is
		})
	},
	"yield request": func(s *stage, of step) {
		if asked := receive(s.t, s.claims[of.Of].(*sidekeeper.Leadership).YieldRequested()); asked.Reason != of.Reason {
			s.t.Fatalf("%+v", asked)
		}
	},
	"granted": func(s *stage, of step) {
		got := s.outcome(of)
		must(s.t, got.err)
		s.claims[of.Of] = got.claim
	},
	"failed": func(s *stage, of step) { s.isError(of, s.outcome(of).err) },
	"same token": func(s *stage, of step) {
		if one, other := s.stand[of.Of].FencingToken(), s.stand[of.Than].FencingToken(); one != other || one == 0 {
			s.t.Fatal(one, other)
		}
	},
	"claimed": func(s *stage, of step) {
		counts, err := s.stand[of.Of].Check(s.t.Context())
		must(s.t, err)
		left := time.Until(s.stand[of.Of].Until())
		if counts <= 0 || counts > 58*time.Second || (left-seconds(of.For)).Abs() > 30*time.Second {
			s.t.Fatal(counts, left)
		}
	},
	"larger token": func(s *stage, of step) {
		if one, other := tokenOf(s.claims[of.Of], of.Lock), tokenOf(s.claims[of.Than], of.Lock); one <= other {
			s.t.Fatalf("%d is not larger than %d", one, other)
		}
	},
	"holders": func(s *stage, of step) {
		owners := []string{}
		view, err := s.client(of).Get(s.t.Context(), of.Lock)
		must(s.t, err)
		for _, holder := range view.Holders {
			owners = append(owners, holder.Owner)
		}
		if fmt.Sprint(owners) != fmt.Sprint(of.Are) {
			s.t.Fatalf("%v, not %v", owners, of.Are)
		}
	},
	"name": func(s *stage, of step) {
		if got := sidekeeper.NameOf(of.Of); got != of.Is {
			s.t.Errorf("%q, not %q", got, of.Is)
		}
	},
	"segment": func(s *stage, of step) {
		if got := sidekeeper.SegmentOf(of.Of); got != of.Is {
			s.t.Errorf("%q, not %q", got, of.Is)
		}
	},
	"waiters": func(s *stage, of step) {
		s.until(of, func() bool {
			view, err := s.client(of).Get(s.t.Context(), of.Lock)
			must(s.t, err)
			return len(view.Waiters) == of.Number
		})
	},
	"running": func(s *stage, of step) { s.until(of, func() bool { return s.jobs[of.Of].ran() == 1 }) },
	"stopped": func(s *stage, of step) {
		s.until(of, func() bool { return s.jobs[of.Of].stopped() != nil })
		s.isError(of, s.jobs[of.Of].stopped())
	},
	"ran": func(s *stage, of step) {
		if times := s.jobs[of.Of].ran(); times != of.Times {
			s.t.Fatalf("%s ran %d times", of.Of, times)
		}
	},
	"attempt": func(s *stage, of step) {
		if number := s.claims[of.Of].(attempt).Number(); number != of.Number {
			s.t.Fatalf("%s is attempt %d", of.Of, number)
		}
	},
	"tick": func(s *stage, of step) {
		tick := s.claims[of.Of].(*sidekeeper.Tick)
		if late := time.Since(tick.At()); tick.RunID() != of.Run || late < -time.Minute || late > time.Minute {
			s.t.Fatalf("%s is of run %q, due %v ago", of.Of, tick.RunID(), late)
		}
	},
	"number": func(s *stage, of step) {
		if number := s.claims[of.Of].(*sidekeeper.Permits).Number(); number != of.Number {
			s.t.Fatalf("%s has number %d", of.Of, number)
		}
	},
	"no number": func(s *stage, of step) {
		if number := s.claims[of.Of].(*sidekeeper.Permits).Number(); number != -1 {
			s.t.Fatalf("%s has number %d", of.Of, number)
		}
	},
	"rests": func(s *stage, of step) {
		view, err := s.client(of).GetSemaphore(s.t.Context(), of.Semaphore)
		must(s.t, err)
		if len(view.Quarantines) != 1 || view.Quarantines[0].Number != of.Number {
			s.t.Fatalf("%+v", view.Quarantines)
		}
		if left := time.Until(view.Quarantines[0].Until); (left - seconds(of.For)).Abs() > 30*time.Second {
			s.t.Fatal(left)
		}
	},
	"works on": func(s *stage, of step) {
		s.until(of, func() bool {
			items, _ := s.works.of(of.Of)
			return len(items) == of.Number
		})
	},
	"history": func(s *stage, of step) {
		if told := s.history(of.Schedule); !slices.Equal(told, of.Are) {
			s.t.Fatalf("%q, not %q", told, of.Are)
		}
	},
	"exited": func(s *stage, of step) { s.until(of, func() bool { return !s.sidecar.Running() }) },
	"done":   func(s *stage, of step) { s.ended(of, receive(s.t, s.jobs[of.Of].done)) },
	"ended":  func(s *stage, of step) { s.commands[of.Of]() },
	"releasing": func(s *stage, of step) {
		s.until(of, func() bool {
			held := s.jobs[of.Of].held.Load()
			return held != nil && !held.Valid() && held.Err() == nil
		})
	},
	"going on": func(s *stage, of step) {
		if len(s.jobs[of.Of].done) > 0 {
			s.t.Fatalf("%s has returned", of.Of)
		}
	},
	"waiting": func(s *stage, of step) {
		s.until(of, func() (is bool) {
			s.locked(func() {
				number, told := s.waiting[of.Of]
				is = told && number == of.Number
			})
			return is
		})
	},
	"round": func(s *stage, of step) {
		one, other := s.claims[of.Of].(*sidekeeper.BarrierEntry).Round(), s.claims[of.Than].(*sidekeeper.BarrierEntry).Round()
		if is := map[int]string{0: "same", 1: "larger"}[cmp.Compare(one, other)]; is != of.Is || one == 0 {
			s.t.Fatalf("round %d is not %v than round %d", one, of.Is, other)
		}
	},
	"leading": func(s *stage, of step) {
		s.until(of, func() bool { return s.jobs[of.Of].ran() == of.Times })
	},
	"joined": func(s *stage, of step) {
		s.until(of, func() bool { return s.jobs[of.Of].ran() == of.Times })
	},
	"leader": func(s *stage, of step) {
		s.until(of, func() (is bool) {
			s.locked(func() { is = s.leaders[of.Of] == fmt.Sprint("leader ", of.Is) })
			return is
		})
	},
	"members": func(s *stage, of step) {
		s.until(of, func() bool {
			members := []string{}
			view, err := s.client(of).GetGroup(s.t.Context(), of.Group)
			must(s.t, err)
			for _, member := range view.Members {
				members = append(members, member.Member)
			}
			return fmt.Sprint(members) == fmt.Sprint(of.Are)
		})
	},
	"picked": func(s *stage, of step) {
		s.until(of, func() bool {
			view, err := s.client(of).GetGroup(s.t.Context(), of.Group)
			must(s.t, err)
			name := ""
			if picked := sidekeeper.Pick(view, of.Key); picked != nil {
				name = picked.Member
			}
			return name == of.Is
		})
	},
	"state": func(s *stage, of step) {
		s.until(of, func() bool {
			state := map[string]any{}
			for key, entry := range s.views[of.Of].All() {
				state[key] = string(entry.Value)
			}
			return s.views[of.Of].Age() == 0 && fmt.Sprint(state) == fmt.Sprint(of.Is)
		})
	},
	"stale": func(s *stage, of step) {
		if view := s.views[of.Of]; view != nil {
			s.until(of, func() bool { return view.Age() > 0 })
			return
		}
		s.until(of, s.isShown(of, "stale"))
	},
	"fresh": func(s *stage, of step) { s.until(of, s.isShown(of, "fresh")) },
}

// outcome waits for a claim that was asked for in the background.
func (s *stage) outcome(of step) (got made) {
	s.t.Helper()
	s.until(of, func() bool {
		select {
		case got = <-s.pending[of.Of].result:
			return true
		default:
			return false
		}
	})
	return got
}
