package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/inject"
	"github.com/sidekeeper/sidekeeper/internal/sink"
)

// injection is what `sidekeeper inject-webhook` is told.
type injection struct {
	pattern string
	options inject.Options
	log     settings // its log level and format alone
}

// flags is every setting, with its name, default and help.
func (i *injection) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("inject-webhook", pflag.ContinueOnError)
	f.SortFlags = false
	o := &i.options
	f.StringVar(&i.pattern, "pattern", "", "`file` with the pattern of what is added to pods, written by the chart; required")
	f.StringVar(&o.Listen, "listen", ":8443", "listen address (HTTPS) for API servers, as `host:port`")
	f.StringVar(&o.MetricsListen, "metrics-listen", "", "listen address (HTTP) of /metrics, /healthz and /readyz, as `host:port`; empty disables it")
	f.StringVar(&o.Certificate, "tls-cert", "", "`file` with a certificate that is renewed externally, instead of --secret, --webhook and --host; reloaded when it changes")
	f.StringVar(&o.Key, "tls-key", "", "`file` with that certificate's key; reloaded when it changes")
	f.StringVar(&o.Secret, "secret", "", "where to keep the certificates that the injectors issue themselves: a Secret, as `namespace/name`")
	f.StringVar(&o.Webhook, "webhook", "", "`name` of the MutatingWebhookConfiguration that is given their authorities")
	f.StringVar(&o.Host, "host", "", "`name` by which API servers call the webhook: service.namespace.svc")
	f.DurationVar(&o.Lifetime, "certificate-lifetime", 90*24*time.Hour, "lifetime of these certificates, at least 10s; the injectors renew them when a third of it is left")
	f.StringVar(&o.API.Server, "kube-api", "", "`address` of the API server, https://host:port; empty for the cluster's default")
	f.StringVar(&o.API.TokenFile, "kube-token-file", "", "`file` with the token for it; empty for the service account's")
	f.StringVar(&o.API.CAFile, "kube-ca-file", "", "`file` with the CA certificates to trust for it; empty for the service account's")
	f.DurationVar(&o.ShutdownDelay, "shutdown-delay", 5*time.Second, "how long the injector still answers after it was stopped; at most 24h")
	f.Var(choose(&i.log.logLevel, "info", "debug", "warn", "error"), "log-level", "minimum log level")
	f.Var(choose(&i.log.logFormat, "json", "console"), "log-format", "log format, for programs or for people")
	return f
}

// newInjectWebhookCommand is the webhook that adds sidecars to pods.
func newInjectWebhookCommand() *cobra.Command {
	injection := &injection{}
	return newServerCommand(&cobra.Command{
		Use: "inject-webhook", Short: "Serve a Kubernetes webhook that adds a sidecar to pods that ask for one",
	}, injection.flags(), injection.check, injection.serve)
}

func (i *injection) check() error {
	o := i.options
	own := o.Secret != "" || o.Webhook != "" || o.Host != ""
	switch {
	case i.pattern == "":
		return errors.New("--pattern is required: the file with what is added to pods")
	case (o.Certificate == "") != (o.Key == ""):
		return fmt.Errorf("--tls-cert %q: goes together with --tls-key", o.Certificate)
	case o.Certificate != "" && own:
		return errors.New("--tls-cert: use certificate files or --secret, not both")
	case o.Certificate == "" && (o.Secret == "" || o.Webhook == "" || o.Host == ""):
		return errors.New("required: --tls-cert and --tls-key, or --secret, --webhook and --host")
	case o.Lifetime < leastLifetime:
		return fmt.Errorf("--certificate-lifetime %s: at least %s, so that there is time to renew it", o.Lifetime, leastLifetime)
	case o.ShutdownDelay < 0 || o.ShutdownDelay > maxDuration:
		return fmt.Errorf("--shutdown-delay %s: from 0 to 24h", o.ShutdownDelay)
	default:
		return nil
	}
}

// leastLifetime is short enough to see certificates come and go, and not for use.
const leastLifetime = 10 * time.Second

func (i *injection) serve(ctx context.Context, out io.Writer, logged *sink.Sink) error {
	i.options.Log = i.log.newLog(logged, nil)
	pattern, err := inject.ReadPattern(i.pattern, checkArguments)
	if err != nil {
		return exit.UsageError(fmt.Errorf("--pattern %w", err))
	}
	server, err := inject.NewServer(i.options, pattern, checkArguments)
	if err != nil {
		return exit.UsageError(err)
	}
	tellAddresses(out, server.Addresses())
	return server.Serve(ctx)
}

// checkArguments finds the first flag of a sidecar's command line that breaks one of its rules.
func checkArguments(arguments []string) (flag string, err error) {
	if len(arguments) == 0 || arguments[0] != "serve" {
		return "", errors.New("the first word must be serve")
	}
	sidecar := &settings{}
	flags := sidecar.flags()
	for _, argument := range arguments[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		if flags.Lookup(name) == nil || !strings.HasPrefix(argument, "--") {
			return "", fmt.Errorf("%s is not a flag of the sidecar", argument)
		}
		if err := flags.Lookup(name).Value.Set(value); err != nil {
			return name, err
		}
	}
	for _, rule := range sidecar.rules() {
		if !rule.obeyed {
			return rule.flag, errors.New(rule.text)
		}
	}
	return "", nil
}
