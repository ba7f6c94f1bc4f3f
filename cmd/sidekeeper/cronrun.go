package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	_ "time/tzdata" // the image has no time zones

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/internal/cron"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
	"github.com/sidekeeper/sidekeeper/service"
)

const (
	// betweenTries lies between two attempts at what has failed.
	betweenTries = 5 * time.Second
	// largestCrontab bounds a crontab, in bytes.
	largestCrontab = 1 << 20
)

// A cronRun runs the commands of a crontab, each tick on one of the machines that have it.
type cronRun struct {
	reach    *reach
	file     string
	defaults cron.Defaults
	owner    string

	client    *sidekeeper.Client
	schedules schedulev1.ScheduleServiceClient
	stdout    io.Writer
	stderr    io.Writer
	killed    chan struct{} // closed when commands are to be killed
	works     sync.WaitGroup

	mu    sync.Mutex
	lease *sidekeeper.Lease
	lines map[string]*cronLine // by the name of the schedule
}

// A cronLine works for one schedule.
type cronLine struct {
	job  cron.Job
	stop context.CancelFunc // ends its waiting
	done chan struct{}      // closed when its command has ended
}

func newCronCommand(reach *reach) *cobra.Command {
	c := &cronRun{reach: reach, lines: map[string]*cronLine{}, killed: make(chan struct{})}
	run := entry("run CRONTAB", "Run each line of a crontab on one of several machines",
		cobra.ExactArgs(1), nil, func(command *cobra.Command, args []string) error {
			stdout, stderr := sink.New(command.OutOrStdout()), sink.New(command.ErrOrStderr()) // no command waits for their readers
			defer stderr.Close()
			defer stdout.Close()
			c.file, c.stdout, c.stderr = args[0], stdout.Log(sink.Options{}), stderr.Log(sink.Options{})
			return c.run(command.Context())
		})
	c.defaults.Broken = service.BrokenNameRule
	flags := run.Flags()
	flags.StringVar(&c.defaults.Prefix, "prefix", "cron", "first part of the names of schedules that the crontab does not name")
	flags.StringVar(&c.defaults.Zone, "time-zone", "UTC", "time zone of lines that have no CRON_TZ above them")
	flags.StringVar(&c.owner, "owner", "", "owner of the attempts, for people (default: this host's name and the process ID)")
	return parent("cron", "Run the lines of a crontab",
		run,
	)
}

func (c *cronRun) say(text string, facts ...any) {
	_, _ = fmt.Fprintf(c.stderr, "sidekeeper: "+text+"\n", facts...)
}

func (c *cronRun) read() ([]cron.Job, error) {
	text, err := os.ReadFile(c.file)
	if err == nil && len(text) > largestCrontab {
		err = errors.New("more than 1 MiB")
	}
	if err != nil {
		return nil, err
	}
	jobs, err := cron.Read(string(text), c.defaults)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.file, err)
	}
	return jobs, nil
}

// run returns when it was told to end, and no command runs any more.
func (c *cronRun) run(ctx context.Context) (err error) {
	jobs, err := c.read()
	if err != nil {
		return exit.UsageError(err)
	}
	c.owner = cmp.Or(c.owner, supervise.DefaultOwner())
	if c.client, err = c.reach.dial(c.reach.address); err != nil { //nolint:contextcheck // it lives until Close
		return err
	}
	defer c.client.Close()
	return c.reach.stubsAt(c.reach.address, func(connection grpc.ClientConnInterface) error {
		c.schedules = schedulev1.NewScheduleServiceClient(connection)
		return c.serve(ctx, jobs)
	})
}

// serve heeds signals: SIGHUP has the crontab read anew. SIGTERM and SIGINT end the waiting; the second of them ends commands, too, and the
// third kills them.
func (c *cronRun) serve(ctx context.Context, jobs []cron.Job) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the readers of the output may leave
	running, end := context.WithCancel(ctx)
	defer end()
	var reaping sync.WaitGroup
	reaping.Go(func() { supervise.ReapOrphans(running) })
	defer reaping.Wait()
	defer end()
	waiting, stop := context.WithCancelCause(running)
	defer stop(nil)
	c.become(running, waiting, jobs)
	for waiting.Err() == nil {
		select {
		case <-waiting.Done():
		case got := <-signals:
			if got != syscall.SIGHUP {
				stop(errors.New("given up: " + got.String()))
				break
			}
			if jobs, err := c.read(); err != nil {
				c.say("the lines stay as they are: %v", err)
			} else {
				c.become(running, waiting, jobs)
			}
		}
	}
	return c.wind(end, signals)
}

// wind returns when no command runs any more.
func (c *cronRun) wind(end func(), signals <-chan os.Signal) error {
	c.say("ends when the commands have ended")
	all := make(chan struct{})
	go func() {
		defer close(all)
		c.works.Wait()
	}()
	for asked := 1; ; {
		select {
		case <-all:
			return nil
		case got := <-signals:
			if got == syscall.SIGHUP {
				continue
			}
			switch asked++; asked {
			case 2:
				end()
			case 3:
				close(c.killed)
			}
		}
	}
}

// become works for these lines, and for those that are as they were as before: it puts their schedules anew, which may have been changed or
// removed by hand. A line that has changed waits for its command to end.
func (c *cronRun) become(running, waiting context.Context, jobs []cron.Job) {
	for name, line := range c.lines {
		if !slices.ContainsFunc(jobs, func(job cron.Job) bool { return job.Name == name && isSame(job, line.job) }) {
			line.stop()
			line.job = cron.Job{} // should it come back, it is another one
		}
	}
	for _, job := range jobs {
		before := c.lines[job.Name]
		if before != nil && isSame(job, before.job) {
			c.works.Go(func() { c.putAgain(waiting, job) })
			continue
		}
		ctx, stop := context.WithCancel(waiting)
		line := &cronLine{job: job, stop: stop, done: make(chan struct{})}
		c.lines[job.Name] = line
		c.works.Go(func() {
			defer close(line.done)
			if before != nil {
				<-before.done
			}
			c.work(running, ctx, job)
		})
	}
	c.say("%d lines of %s", len(jobs), c.file)
}

// isSame says whether a line is as it was, wherever it stands.
func isSame(a, b cron.Job) bool {
	a.Number, b.Number = 0, 0
	return reflect.DeepEqual(a, b)
}

// work puts the schedule of a line, and runs its command at each tick that is this machine's, until waiting ends.
func (c *cronRun) work(running, waiting context.Context, job cron.Job) {
	for put := false; waiting.Err() == nil; {
		err := error(nil)
		if !put {
			err = c.put(waiting, job)
			put = err == nil
		}
		if err == nil {
			err = c.tick(running, waiting, job)
		}
		if err == nil || waiting.Err() != nil {
			continue
		}
		c.say("%s: %s", job.Name, exit.Explain(err, c.reach.named(c.reach.address)))
		put = put && !errors.Is(err, sidekeeper.ErrScheduleNotFound) // it was removed
		select {
		case <-waiting.Done():
		case <-time.After(betweenTries):
		}
	}
}

func (c *cronRun) putAgain(ctx context.Context, job cron.Job) {
	if err := c.put(ctx, job); err != nil && ctx.Err() == nil {
		c.say("%s: %s", job.Name, exit.Explain(err, c.reach.named(c.reach.address)))
	}
}

// put leaves `paused` as it is, which is for people.
func (c *cronRun) put(ctx context.Context, job cron.Job) error {
	ctx, cancel := context.WithTimeout(ctx, c.reach.timeout)
	defer cancel()
	within := cmp.Or(job.StartWithin, 5*time.Minute)
	_, err := c.schedules.Put(ctx, &schedulev1.PutRequest{
		Name: job.Name, Cron: job.Line, TimeZone: job.Zone, Misfire: misfireOf(job.CatchUp), OnLoss: policyOf(job.SkipLost),
		StartWithin: durationpb.New(within),
	})
	return err
}

// tick waits for a tick and runs the command. A command that fails is no error: the history tells of it.
func (c *cronRun) tick(running, waiting context.Context, job cron.Job) error {
	lease, err := c.leased(waiting)
	if err != nil {
		return err
	}
	tail := &supervise.Tail{To: c.stdout}
	runner := &supervise.Runner{
		Command: []string{job.Shell, "-c", job.Command}, Stdin: strings.NewReader(job.Input), Stdout: tail, Stderr: tail, Deaf: true,
		Notes: c.stderr, Killed: c.killed, Client: c.client, Dialer: &c.reach.dialer, Address: c.reach.named(c.reach.address),
		Timeout: c.reach.timeout, Environment: slices.Concat(os.Environ(), job.Environment),
	}
	claim := &supervise.Tick{Schedule: job.Name, Waiting: waiting, Running: running, Output: tail}
	claim.Options.Lease, claim.Options.Owner = lease, c.owner
	err = runner.Run(running, claim)
	tail.Flush()
	if claim.HasRun() {
		if err != nil {
			c.say("%s: %s", job.Name, cmp.Or(exit.Explain(err, c.reach.named(c.reach.address)), err.Error()))
		}
		return nil
	}
	return err
}

// leased is the lease of all lines: one session in the ensemble, whatever their number.
func (c *cronRun) leased(ctx context.Context) (*sidekeeper.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease != nil && c.lease.Err() == nil {
		return c.lease, nil
	}
	lease, err := c.client.OpenLease(ctx, sidekeeper.LeaseOptions{Owner: c.owner})
	if err == nil {
		c.lease = lease
	}
	return lease, err
}
