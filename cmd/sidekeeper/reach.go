package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/certificate"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

const (
	defaultOperatorAddress  = "unix:///run/sidekeeper/operator.sock"
	operatorAddressVariable = "SIDEKEEPER_OPERATOR_ADDRESS"
)

// A reach is how the commands for people get to the sidecar, and how they show what it answers.
type reach struct {
	address, operatorAddress    string
	authority, certificate, key string
	timeout                     time.Duration
	output                      choice
	from                        map[string]string       // of addresses that no flag gives: where each is from, for people
	last                        string                  // the address that was dialled
	giveUp                      context.CancelCauseFunc // ends the command for what waiting does not change
	refusals                    refusals                // of the certificate as expired
	dialer                      supervise.Dialer
	away                        supervise.Away // tells a person that the sidecar is waited for
	guards                      []string       // of what is written, as LOCK:TOKEN
}

func (r *reach) addFlags(flags *pflag.FlagSet) {
	r.from = map[string]string{}
	flags.StringVar(&r.address, "address", r.preset("--address", sidekeeper.AddressVariable, sidekeeper.DefaultAddress),
		"address of the sidecar: unix:///path or host:port ($"+sidekeeper.AddressVariable+")")
	flags.StringVar(&r.operatorAddress, "operator-address",
		r.preset("--operator-address", operatorAddressVariable, defaultOperatorAddress),
		"address of the sidecar's operator listener ($"+operatorAddressVariable+"); --address where that alone is given")
	r.timeout = 10 * time.Second
	flags.Var(span(&r.timeout, time.Millisecond, forever), "timeout", "timeout of each call")
	flags.StringVar(&r.authority, "tls-ca", "", "file with the CA certificates to trust, for a remote address")
	flags.StringVar(&r.certificate, "tls-cert", "", "file with the client certificate")
	flags.StringVar(&r.key, "tls-key", "", "file with the client certificate's key")
	r.output = choice{values: []string{"table", "json"}}
	flags.VarP(&r.output, "output", "o", "output format, a table for people or json for programs")
}

// preset is the address where a flag gives none.
func (r *reach) preset(flag, variable, fallback string) string {
	address := fromEnvironment(variable, fallback)
	r.from[address] = "of " + variable
	if os.Getenv(variable) == "" {
		r.from[address] = "the default: if it listens elsewhere, give " + flag + " or " + variable
	}
	return address
}

// named is an address for people, with where it is from unless a flag gives it.
func (r *reach) named(address string) string {
	if from := r.from[address]; from != "" {
		return address + " (" + from + ")"
	}
	return address
}

// settle has what operators do go to the sidecar that --address names, unless it was said where operators reach one: at the default address
// another sidecar may listen.
func (r *reach) settle(flags *pflag.FlagSet) {
	for flag, address := range map[string]string{"address": r.address, "operator-address": r.operatorAddress} {
		if flags.Changed(flag) {
			delete(r.from, address)
		}
	}
	if flags.Changed("address") && !flags.Changed("operator-address") && os.Getenv(operatorAddressVariable) == "" {
		r.operatorAddress = r.address
	}
}

func (r *reach) json() bool { return r.output.String() == "json" }

func fromEnvironment(variable, fallback string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return fallback
}

// call dials the sidecar and makes one call in time.
func (r *reach) call(ctx context.Context, address string, do func(context.Context, *sidekeeper.Client) error) error {
	return r.callWithin(ctx, r.timeout, address, do)
}

func (r *reach) callWithin(
	ctx context.Context, timeout time.Duration, address string, do func(context.Context, *sidekeeper.Client) error,
) error {
	ctx, err := r.guarded(ctx)
	if err != nil {
		return err
	}
	client, err := r.dial(address) //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx, client)
}

// A does is what a command does.
type does = func(*cobra.Command, []string) error

// parent is a command that only has others below it.
func parent(use, short string, below ...*cobra.Command) *cobra.Command {
	command := entry(use, short, cobra.NoArgs, nil, showHelp)
	command.AddCommand(below...)
	return command
}

// entry is one command without flags of its own; names completes its arguments.
func entry(use, short string, fit cobra.PositionalArgs, names cobra.CompletionFunc, do does) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: explained(fit), ValidArgsFunction: names, RunE: do}
}

// doing is what a command does that has the sidecar do one thing.
func doing(r *reach, do func(ctx context.Context, client *sidekeeper.Client, args []string) error) does {
	return func(command *cobra.Command, args []string) error {
		return r.call(command.Context(), r.address, func(ctx context.Context, client *sidekeeper.Client) error { return do(ctx, client, args) })
	}
}

// asking is what a command does that asks the sidecar one thing and shows its answer.
func asking[T any](
	r *reach, ask func(ctx context.Context, client *sidekeeper.Client, args []string) (T, error), tell func(io.Writer, T) error,
) does {
	return func(command *cobra.Command, args []string) error {
		return r.call(command.Context(), r.address, func(ctx context.Context, client *sidekeeper.Client) error {
			answer, err := ask(ctx, client, args)
			if err != nil {
				return err
			}
			return tell(command.OutOrStdout(), answer)
		})
	}
}

// stubs does something for which the client has no calls of its own.
func (r *reach) stubs(do func(grpc.ClientConnInterface) error) error { return r.stubsAt(r.address, do) }

func (r *reach) stubsAt(address string, do func(grpc.ClientConnInterface) error) error {
	client, err := r.dial(address) // which refuses addresses that need TLS
	if err != nil {
		return err
	}
	defer client.Close()
	connection, err := r.connect(address)
	if err != nil {
		return exit.UsageError(err)
	}
	defer connection.Close()
	return sidekeeper.FromStatus(do(connection))
}

// A stubCall is what a command does with the stub of a service.
type stubCall[S any] func(ctx context.Context, stub S, args []string, to io.Writer) error

func stubCommand[S any](
	r *reach, address *string, stub func(grpc.ClientConnInterface) S, use, short string, fit cobra.PositionalArgs, do stubCall[S],
) *cobra.Command {
	return entry(use, short, fit, cobra.NoFileCompletions, func(command *cobra.Command, args []string) error {
		return r.stubsAt(*address, func(connection grpc.ClientConnInterface) error {
			return do(command.Context(), stub(connection), args, command.OutOrStdout())
		})
	})
}

// timed ends a call after --timeout.
func timed[S any](r *reach, do stubCall[S]) stubCall[S] {
	return func(ctx context.Context, stub S, args []string, to io.Writer) error {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		return do(ctx, stub, args, to)
	}
}

// watch shows all that a watch tells, until it ends.
func watch[T any](
	r *reach, command *cobra.Command, begin func(*sidekeeper.Client, context.Context, string) iter.Seq2[T, error], name string,
	tell func(io.Writer, T) error,
) error {
	client, err := r.dial(r.address)
	if err != nil {
		return err
	}
	defer client.Close()
	for told, err := range begin(client, command.Context(), name) {
		if err != nil {
			return err
		}
		if err := tell(command.OutOrStdout(), told); err != nil {
			return err
		}
	}
	return nil
}

// watching is what a command does that shows all that a watch tells.
func watching[T any](
	r *reach, begin func(*sidekeeper.Client, context.Context, string) iter.Seq2[T, error], tell func(io.Writer, T) error,
) does {
	return func(command *cobra.Command, args []string) error { return watch(r, command, begin, args[0], tell) }
}

// showCommand shows a view of what has a name, once or whenever it changes.
func showCommand[T any](
	r *reach, short string, names cobra.CompletionFunc, get func(*sidekeeper.Client, context.Context, string) (T, error),
	tell func(io.Writer, T) error, begin func(*sidekeeper.Client, context.Context, string) iter.Seq2[T, error], tellAgain func(io.Writer, T) error,
) *cobra.Command {
	again := false
	once := asking(r, func(ctx context.Context, client *sidekeeper.Client, args []string) (T, error) {
		return get(client, ctx, args[0])
	}, tell)
	command := entry("show NAME", short, cobra.ExactArgs(1), names, func(command *cobra.Command, args []string) error {
		if again {
			return watch(r, command, begin, args[0], tellAgain)
		}
		return once(command, args)
	})
	command.Flags().BoolVarP(&again, "watch", "w", false, "show it again whenever it changes")
	return command
}

// withStaleness tells a person that the view above may be out of date, unless that view could not be shown.
func withStaleness(to io.Writer, stale bool, err error) error {
	if err == nil && stale {
		_, err = fmt.Fprintln(to, "no contact with the ensemble: this may be out of date")
	}
	return err
}

// say shows an answer: as it is to programs, and in these words to people.
func (r *reach) say(to io.Writer, answer proto.Message, words string, facts ...any) error {
	if r.json() {
		return show.Message(to, answer)
	}
	_, err := fmt.Fprintf(to, words, facts...)
	return err
}

// tabulate shows a list: as it is to programs, and to people as a table with a row for each item.
func tabulate[T any](r *reach, to io.Writer, answer proto.Message, header string, items []T, row func(T) []string) error {
	if r.json() {
		return show.Message(to, answer)
	}
	return show.Table(to, header, each(items, row))
}

// dial makes a client, which the caller must close. What it asks for fails at once while the sidecar is away.
func (r *reach) dial(address string) (*sidekeeper.Client, error) {
	return r.dialWith(address, sidekeeper.WithoutRepetition())
}

// dialWith makes a client that waits for a sidecar that is away, as all clients do.
func (r *reach) dialWith(address string, options ...sidekeeper.Option) (*sidekeeper.Client, error) {
	r.last = address
	options = append(options, sidekeeper.WithDialer(r.dialer.Dial), sidekeeper.WithAbsence(r.absent))
	if r.usesTLS() {
		config, err := r.tlsConfig()
		if err != nil {
			return nil, exit.UsageError(err)
		}
		if cause := r.expired(config); cause != "" {
			return nil, exit.CannotReach(r.named(address), cause)
		}
		options = append(options, sidekeeper.WithTLS(config))
	}
	client, err := sidekeeper.Dial(address, options...)
	if err != nil {
		return nil, exit.UsageError(err)
	}
	return client, nil
}

func (r *reach) usesTLS() bool { return r.authority != "" || r.certificate != "" || r.key != "" }

func (r *reach) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if (r.certificate == "") != (r.key == "") {
		return nil, errors.New("--tls-cert and --tls-key go together: both or none")
	}
	if r.certificate != "" {
		pair, err := tls.LoadX509KeyPair(r.certificate, r.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", r.certificate, r.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
		var last atomic.Pointer[tls.Certificate] // that could be read: its files may be about to be replaced
		last.Store(&pair)
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if renewed, err := tls.LoadX509KeyPair(r.certificate, r.key); err == nil {
				last.Store(&renewed)
			}
			return last.Load(), nil
		}
	}
	if r.authority != "" {
		authorities, err := os.ReadFile(r.authority)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		if config.RootCAs, err = certificate.Pool(authorities, r.authority); err != nil {
			return nil, err
		}
	}
	return config, nil
}
