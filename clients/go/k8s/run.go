package k8s

import (
	"context"
	"errors"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// resignTime bounds how long Run waits for the sidecar to confirm that the term is over.
const resignTime = 10 * time.Second

// Run campaigns, runs body while this process leads, and resigns when body has returned. The context of body is ctx with the term as a guard
// (see sidekeeper.Leadership), and ends when body must return: when the term is lost (sidekeeper.ErrLost), at risk (ErrAtRisk), or asked
// for (ErrYieldRequested). The process ends if body has not returned when the validity of the term is about to end. Run returns the error
// of the campaign, or those of body and of resigning together. To lead again, call it again.
func Run(
	ctx context.Context, client *sidekeeper.Client, election string, options Options, body func(ctx context.Context, term sidekeeper.Ticket) error,
) error {
	led, err := client.Campaign(ctx, election, options.campaign())
	if err != nil {
		return err
	}
	acting, stop := context.WithCancelCause(led.Guard(ctx))
	defer stop(nil)
	if err := settle(ctx, led, options.settle()); err != nil {
		return errors.Join(err, resigned(ctx, led.Resign))
	}
	return run(ctx, led, options, stop, func() error { return body(acting, led.Term()) })
}

// run acts for a leadership, and resigns it afterwards, also when act panics.
func run(ctx context.Context, led leadership, options Options, stop context.CancelCauseFunc, act func() error) (err error) {
	t, err := begin(led, options, stop)
	if err != nil {
		return errors.Join(err, resigned(ctx, led.Resign))
	}
	defer func() { err = errors.Join(err, resigned(ctx, t.end)) }()
	return act()
}

func resigned(ctx context.Context, resign func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTime)
	defer cancel()
	return resign(ctx)
}

// settle waits so long, as long as the process leads.
func settle(ctx context.Context, led leadership, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-led.Done():
		return nil // which resigning says
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
