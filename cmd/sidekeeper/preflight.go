package main

import (
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
)

// preflightTime is for how long the ensemble is looked at before the sidecar serves.
const preflightTime = 15 * time.Second

// refuseRisks returns an error if --strict is set and the ensemble or the settings are risky, and writes why.
func (s *settings) refuseRisks(ctx context.Context, ensemble ensemble, out io.Writer) error {
	if !s.strict {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	findings, err := doctor.Preflight(ctx, ensemble, s.forDoctor(doctorFlags{}))
	verdict := verdictOn(findings)
	if err == nil && verdict == nil {
		return nil
	}
	if err != nil {
		verdict = unreached(err)
	}
	return errors.Join(writeFindings(out, findings), verdict)
}

// tellRisks has the log say for how long leases are valid and, as soon as it is found out, while the sidecar serves, what is
// risky. What it returns ends that.
func (s *settings) tellRisks(ctx context.Context, ensemble ensemble, log *zap.Logger) (stop func()) {
	validity := s.validity()
	log.Info("leases are valid for less than the session timeout", zap.Duration("timeout", s.ensemble.SessionTimeout),
		zap.Duration("max", validity.Most), zap.Duration("min", validity.Least), zap.Duration("silence", validity.Silence))
	if s.strict { // it was looked at, and there was nothing
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	over := make(chan struct{})
	go func() {
		defer close(over)
		findings, err := doctor.Preflight(ctx, ensemble, s.forDoctor(doctorFlags{}))
		for _, found := range findings {
			tell := log.Warn
			if found.Severity == doctor.Note {
				tell = log.Info
			}
			tell("preflight", zap.Stringer("severity", found.Severity), zap.String("about", found.About), zap.String("text", found.Text),
				zap.String("advice", found.Advice))
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("preflight incomplete", zap.Error(err))
		}
	}()
	return func() {
		cancel()
		<-over
	}
}
