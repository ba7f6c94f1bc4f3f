package service

import (
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// An audit is the record of who was given what and lost it, and who ended what belongs to others. docs/audit.md has each event's
// fields. An entry is enough to find a lease or a hold in the log, and of no use for using one.
type audit struct {
	log    *zap.Logger
	strict Record // nil if things are granted even if they cannot be told
}

// A Record is where the lines of an audit go that must be complete.
type Record interface {
	// Takes says whether it takes further lines, as far as is known.
	Takes() bool
	// Missing is how many lines are missing so far.
	Missing() int
	// Written has then called, perhaps at once and within two seconds, with whether all lines are written since so many were missing.
	Written(missing int, then func(all bool))
}

func newAudit(log *zap.Logger, strict Record) audit {
	if log == nil {
		log = zap.NewNop()
	}
	return audit{log, strict}
}

// refuses says why nothing may be granted now, since that could not be told; nil if it may.
func (a audit) refuses() error {
	if a.strict == nil || a.strict.Takes() {
		return nil
	}
	return errNotRecorded
}

// mayBeGranted says why the stream must not be granted anything now. What was granted before the sidecar was started stays so.
func (s *held[P, M]) mayBeGranted() error {
	if s.counts() {
		return nil
	}
	return s.services.audit.refuses()
}

// missing is how many lines are missing before what is about to be told.
func (a audit) missing() int {
	if a.strict == nil {
		return 0
	}
	return a.strict.Missing()
}

// whenRecorded goes on once the line about the grant is written, before the caller hears of the grant. What it counts on by now is refused no
// more: a claim of what it had; and neither are attempts and ticks, of which the ensemble has a record that counts for others.
func (s *held[P, M]) whenRecorded(missing int, then func()) {
	strict := s.services.audit.strict
	if strict == nil || s.recipe.early || s.hold == nil || s.hold.once != nil || s.claim.held() {
		then()
		return
	}
	strict.Written(missing, func(all bool) {
		s.do(func() {
			switch {
			case s.phase != recording:
			case !all:
				s.finish(errNotRecorded)
			case s.place.Gone().IsGiven():
				s.finish(s.broken())
			default:
				then()
			}
		})
	})
}

func (a audit) granted(h *hold) { a.tell("grant", h) }

// resumed tells of a hold that an earlier process granted.
func (a audit) resumed(h *hold) { a.tell("resumption", h) }

// tell tells of each of a hold's locks.
func (a audit) tell(event string, h *hold, more ...zap.Field) {
	if len(h.also) == 0 {
		a.log.Info(event, append(h.fields(), more...)...)
		return
	}
	for _, of := range h.each() {
		a.log.Info(event, append(of.fields(), more...)...)
	}
}

// each is the hold as one for each of what it holds.
func (h *hold) each() []*hold {
	each := []*hold{h}
	for _, of := range h.also {
		one := *h
		one.name, one.token, one.place = of.lock, of.token, of.place
		each = append(each, &one)
	}
	return each
}

// ended tells of the end of a hold; why is nil if its caller gave it up.
func (a audit) ended(h *hold, why error) {
	held := zap.Duration("held", time.Since(h.granted))
	if how := endOf(why); how != "RELEASED" {
		a.tell("loss", h, held, zap.String("reason", how))
		return
	}
	a.tell("release", h, held)
}

func (a audit) joined(m *member, under guards) {
	a.log.Info("join", append(m.fields(), under.field())...)
}

// left tells of the end of a member.
func (a audit) left(m *member, reason string) {
	a.log.Info("leave", append(m.fields(), zap.Duration("joined", time.Since(m.joined)), zap.String("reason", reason))...)
}

func (m *member) fields() []zap.Field {
	return []zap.Field{
		zap.String("caller", m.lease.identity), zap.String("name", m.resource.name), zap.Int64("incarnation", m.membership.Incarnation),
		zap.String(leaseWord, m.lease.logID),
	}
}

// fields leaves room for what is told of the end.
func (h *hold) fields() []zap.Field {
	return append(make([]zap.Field, 0, 8),
		zap.String("caller", h.lease.identity), zap.String("kind", h.kind), zap.String("name", h.name.text), zap.Int64("fencing_token", h.token),
		zap.String(leaseWord, h.lease.logID), zap.String("hold", h.logID))
}

func (a audit) revoked(by caller.Caller, lock name, why string, grace *time.Duration, reached int, err error) {
	fields := append(by.Fields(), zap.String("name", lock.text), zap.String("why", why), zap.Int("reached", reached), outcomeField(err))
	if grace != nil {
		fields = append(fields, zap.Duration("grace", *grace))
	}
	a.log.Info("revocation", fields...)
}

func (a audit) broken(by caller.Caller, lock name, token int64, why string, forced bool, err error) {
	a.log.Info("break", append(by.Fields(), zap.String("name", lock.text), zap.Int64("fencing_token", token), zap.String("why", why),
		zap.Bool("forced", forced), outcomeField(err))...)
}

// expired tells that this sidecar has ended a claim whose time was over.
func (a audit) expired(lock string, token int64) {
	a.log.Info("expiry", zap.String("name", lock), zap.Int64("fencing_token", token))
}

// removed tells that an operator has removed what is others': the members of a group, or all keys below one.
func (a audit) removed(by caller.Caller, kind, named, why string, err error) {
	a.log.Info("removal", append(by.Fields(), zap.String("kind", kind), zap.String("name", named), zap.String("why", why),
		outcomeField(err))...)
}

// wrote tells what was to be written, but never a value.
func (a audit) wrote(by caller.Caller, kind, action, named string, err error, more ...zap.Field) {
	fields := append(by.Fields(), zap.String("kind", kind), zap.String("action", action), zap.String("name", named), outcomeField(err))
	a.log.Info("write", append(fields, more...)...)
}

// committed tells of each operation of a transaction; no results are those of one that failed.
func (a audit) committed(by caller.Caller, under guards, operations []recipes.Operation, results []recipes.Entry, err error) {
	actions := map[recipes.Action]string{recipes.ActionPut: "put", recipes.ActionDelete: "delete"}
	for i, operation := range operations {
		action, writes := actions[operation.Action]
		if !writes {
			continue
		}
		var version int32
		if err == nil {
			version = results[i].Version
		}
		a.wrote(by, "key", action, operation.Key, err, zap.Int("bytes", len(operation.Value)), zap.Int32("version", version),
			under.field())
	}
}

func (a audit) advanced(by caller.Caller, under guards, sequence string, to int64, err error) {
	a.log.Info("advance", append(by.Fields(), zap.String("name", sequence), zap.Int64("last_issued", to), outcomeField(err), under.field())...)
}

// outcomeField is `OK`, or the reason of an error.
func outcomeField(err error) zap.Field {
	if err == nil {
		return zap.String("outcome", "OK")
	}
	reason := ReasonOf(err)
	if reason == "" {
		reason = answerTo(err).code.String()
	}
	return zap.String("outcome", reason)
}
