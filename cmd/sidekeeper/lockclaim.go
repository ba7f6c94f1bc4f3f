package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

const (
	shortestClaim = time.Minute
	longestClaim  = 30 * 24 * time.Hour
	// claimPause is between two attempts at a claim whose sidecar is away.
	claimPause = time.Second
)

// definite are the codes of answers that leave no doubt: the claim is not held.
var definite = []codes.Code{
	codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
	codes.Unimplemented,
}

// A claimID says which claim a command is about: by its id, or by a file with that.
type claimID struct {
	id, file string
	drawn    bool // by this command
}

func (c *claimID) register(command *cobra.Command) {
	command.Flags().StringVar(&c.id, "claim", "", "the claim's id, 32 hexadecimal digits, which is a secret")
	command.Flags().StringVar(&c.file, "claim-file", "", "file with the claim's id")
}

// read is the id; empty if no file has it yet.
func (c *claimID) read() (string, error) {
	if c.file == "" {
		return c.id, nil
	}
	if c.id != "" {
		return "", exit.UsageError(errors.New("--claim and --claim-file exclude each other"))
	}
	text, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", exit.UsageError(fmt.Errorf("--claim-file: %w", err))
	}
	return strings.TrimSpace(string(text)), nil
}

// known is the id of a claim that was made before.
func (c *claimID) known() (string, error) {
	id, err := c.read()
	if err == nil && id == "" {
		err = exit.UsageError(errors.New("--claim or --claim-file is required: `sidekeeper lock claim` prints the id, or writes the file"))
	}
	return id, err
}

// make is the id of a new claim, which stands in the file before the sidecar is asked: so it can be released whatever becomes of this program.
func (c *claimID) make() (string, error) {
	id, err := c.read()
	if err != nil || id != "" {
		return id, err
	}
	bits := make([]byte, 16)
	_, _ = rand.Read(bits) // never fails: see its documentation
	id = hex.EncodeToString(bits)
	c.drawn = true
	if c.file != "" {
		_ = os.Remove(c.file) // an empty one, which others may be able to read
		if err := os.WriteFile(c.file, []byte(id+"\n"), 0o600); err != nil {
			return "", exit.UsageError(fmt.Errorf("--claim-file: %w", err))
		}
	}
	return id, nil
}

// A lockClaim is a claim that is asked for.
type lockClaim struct {
	claimID

	reserve, wait time.Duration
	try           bool
	reason, owner string
	mode          choice
}

func newLockClaimCommand(reach *reach) *cobra.Command {
	c := &lockClaim{mode: choice{values: []string{"exclusive", "read", "write"}}}
	command := entry("claim NAME --for DURATION --reason TEXT", "Hold a lock without a process, until a time",
		cobra.ExactArgs(1), reach.completeLock, func(command *cobra.Command, args []string) error {
			switch {
			case c.reserve == 0:
				return exit.UsageError(errors.New("--for is required: how long the claim stands, such as 2h"))
			case c.reason == "":
				return exit.UsageError(errors.New("--reason is required: it tells those who wait why"))
			case c.try && command.Flags().Changed("wait"):
				return exit.UsageError(errors.New("--try and --wait exclude each other"))
			}
			id, err := c.make()
			if err != nil {
				return err
			}
			return reach.claim(command, c, c.request(args[0], id, command.Flags().Changed("wait")))
		})
	flags := command.Flags()
	flags.Var(span(&c.reserve, shortestClaim, longestClaim), "for", "time for which the claim stands, unless it is extended: 1m to 720h; required")
	flags.StringVar(&c.reason, "reason", "", "why, for those who wait and for the audit; required")
	flags.StringVar(&c.owner, "owner", "", "holder, for people (default: the user and this host's name)")
	flags.Var(&c.mode, "mode", "lock mode: exclusive, or reader or writer of a read/write lock")
	flags.Var(span(&c.wait, 0, forever), "wait", "maximum time to wait for the lock (default: no limit)")
	flags.BoolVar(&c.try, "try", false, "do not wait")
	c.register(command)
	return command
}

func (c *lockClaim) request(name, id string, waits bool) *lockv1.ClaimRequest {
	mode := holdv1.Mode_value["MODE_"+strings.ToUpper(c.mode.String())]
	request := &lockv1.ClaimRequest{
		Name: name, ClaimId: id, ReserveFor: durationpb.New(c.reserve), Reason: c.reason, Owner: c.owner, Mode: holdv1.Mode(mode),
	}
	if c.owner == "" {
		request.Owner = userAndHost()
	}
	if c.try || waits {
		request.WaitTimeout = durationpb.New(c.wait)
	}
	return request
}

// userAndHost says who claims, as far as the environment tells.
func userAndHost() string {
	host, _ := os.Hostname()
	owner := strings.Trim(os.Getenv("USER")+"@"+host, "@")
	return strings.ToValidUTF8(owner[:min(len(owner), 128)], "")
}

// claim asks until there is an answer. It prints the id, unless a file has it, and tells people the rest on standard error. If it is
// interrupted, or there is no answer, it releases the claim.
func (r *reach) claim(command *cobra.Command, of *lockClaim, request *lockv1.ClaimRequest) error {
	return r.stubsAt(r.address, func(connection grpc.ClientConnInterface) error {
		locks := lockv1.NewLockServiceClient(connection)
		ctx, stop := endedBySignal(command.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		claimed, err := claimUntilAnswered(ctx, locks, request, command.ErrOrStderr())
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return of.withdraw(ctx, locks, context.Cause(ctx), request.GetClaimId())
		case slices.Contains(definite, status.Code(err)), errors.Is(sidekeeper.FromStatus(err), sidekeeper.ErrWaitTimeout):
			if errors.Is(sidekeeper.FromStatus(err), sidekeeper.ErrClaimEnded) && of.file != "" {
				err = fmt.Errorf("%w: for a new claim, remove %s", sidekeeper.FromStatus(err), of.file)
			}
			return err
		default:
			return exit.With(exit.Code(sidekeeper.FromStatus(err)), of.withdraw(ctx, locks, sidekeeper.FromStatus(err), request.GetClaimId()))
		}
		until := claimed.GetUntil().AsTime().Format(time.RFC3339)
		if r.json() {
			return show.JSON(command.OutOrStdout(), map[string]string{
				"claim_id": request.GetClaimId(), "until": until, "fencing_token": fmt.Sprint(claimed.GetFencingToken()),
			})
		}
		said := fmt.Sprintf("%s is claimed until %s, with fencing token %d", show.Printable(request.GetName()), until, claimed.GetFencingToken())
		if of.file != "" {
			_, err = fmt.Fprintln(command.OutOrStdout(), said)
			return err
		}
		fmt.Fprintln(command.ErrOrStderr(), said+". The claim's id is a secret:")
		_, err = fmt.Fprintln(command.OutOrStdout(), request.GetClaimId())
		return err
	})
}

// endedBySignal ends the context with the first of the signals. Its cause says which, and ends the program as that signal would.
func endedBySignal(ctx context.Context, which ...os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, which...)
	go func() {
		select {
		case by := <-signals:
			number, _ := by.(syscall.Signal)
			cancel(exit.With(exit.Signal+int(number), fmt.Errorf("ended by a signal: %s", by)))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// claimUntilAnswered asks again, with the same id, while the sidecar or the ensemble is away and there is time to wait.
func claimUntilAnswered(
	ctx context.Context, locks lockv1.LockServiceClient, request *lockv1.ClaimRequest, people io.Writer,
) (*lockv1.ClaimResponse, error) {
	begun, wait, told := time.Now(), request.GetWaitTimeout(), false
	for {
		claimed, err := claimOnce(ctx, locks, request)
		away := status.Code(err) == codes.Unavailable || errors.Is(sidekeeper.FromStatus(err), sidekeeper.ErrOutcomeUnknown)
		if !away || ctx.Err() != nil {
			return claimed, err
		}
		if wait != nil {
			left := wait.AsDuration() - time.Since(begun) - claimPause
			if left <= 0 {
				return nil, err
			}
			request.WaitTimeout = durationpb.New(left)
		}
		if !told {
			fmt.Fprintf(people, "sidekeeper: waiting: %v\n", sidekeeper.FromStatus(err))
			told = true
		}
		select {
		case <-time.After(claimPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// answerTime is how much later than the wait's end an answer may come.
const answerTime = 5 * time.Second

// claimOnce bounds a call whose wait is bounded: the sidecar may be frozen.
func claimOnce(ctx context.Context, locks lockv1.LockServiceClient, request *lockv1.ClaimRequest) (*lockv1.ClaimResponse, error) {
	if wait := request.GetWaitTimeout(); wait != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait.AsDuration()+answerTime)
		defer cancel()
	}
	return locks.Claim(ctx, request)
}

// withdraw releases a claim that may have been granted without an answer, and says why it is not held.
func (c *lockClaim) withdraw(ctx context.Context, locks lockv1.LockServiceClient, why error, id string) error {
	if !c.drawn { // others may have the claim
		return fmt.Errorf("%w; the claim may stand", why)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := locks.Release(ctx, &lockv1.ReleaseRequest{ClaimId: id})
	said := sidekeeper.FromStatus(err)
	switch {
	case err == nil, errors.Is(said, sidekeeper.ErrClaimNotFound), errors.Is(said, sidekeeper.ErrClaimEnded):
		if c.file != "" {
			_ = os.Remove(c.file)
		}
		return fmt.Errorf("%w: the claim is withdrawn", why)
	case c.file != "":
		return fmt.Errorf("%w; the claim may stand: release it with --claim-file %s", why, c.file)
	}
	return fmt.Errorf("%w; the claim may stand: release it with --claim %s", why, id)
}

func newLockExtendCommand(reach *reach) *cobra.Command {
	var of claimID
	var reserve time.Duration
	command := claimCommand(reach, "extend --claim ID --for DURATION", "Have a claim end later",
		func(ctx context.Context, locks lockv1.LockServiceClient, _ []string, to io.Writer) error {
			id, err := of.known()
			if err == nil && reserve == 0 {
				err = exit.UsageError(errors.New("--for is required: how long the claim stands from now on, such as 2h"))
			}
			if err != nil {
				return err
			}
			extended, err := locks.Extend(ctx, &lockv1.ExtendRequest{ClaimId: id, ReserveFor: durationpb.New(reserve)})
			if err != nil {
				return err
			}
			return reach.say(to, extended, "claimed until %s\n", extended.GetUntil().AsTime().Format(time.RFC3339))
		})
	command.Flags().Var(span(&reserve, shortestClaim, longestClaim), "for", "time for which the claim stands from now on: 1m to 720h; required")
	of.register(command)
	return command
}

func newLockReleaseCommand(reach *reach) *cobra.Command {
	var of claimID
	command := claimCommand(reach, "release --claim ID", "End a claim",
		func(ctx context.Context, locks lockv1.LockServiceClient, _ []string, to io.Writer) error {
			id, err := of.known()
			if err != nil {
				return err
			}
			_, err = locks.Release(ctx, &lockv1.ReleaseRequest{ClaimId: id})
			said := sidekeeper.FromStatus(err)
			if of.file != "" && (err == nil || errors.Is(said, sidekeeper.ErrClaimEnded) || errors.Is(said, sidekeeper.ErrClaimNotFound)) {
				err = cmp.Or(err, os.Remove(of.file))
			}
			if err != nil {
				return err
			}
			return reach.say(to, &lockv1.ReleaseResponse{}, "released\n")
		})
	of.register(command)
	return command
}

// claimCommand is a command about a claim that was made before.
func claimCommand(reach *reach, use, short string, do stubCall[lockv1.LockServiceClient]) *cobra.Command {
	return stubCommand(reach, &reach.address, lockv1.NewLockServiceClient, use, short, cobra.NoArgs, timed(reach, do))
}
