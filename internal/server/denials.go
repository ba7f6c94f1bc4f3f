package server

import (
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
)

// denials are the part of the audit that tells who was refused what; docs/audit.md tells each event's fields.
type denials struct{ log *zap.Logger }

// deniedReasons are those of callers that asked for what is not theirs.
var deniedReasons = []string{"POLICY_DENIED", "OPERATOR_ONLY", "LEASE_NOT_FOUND", "HOLD_NOT_FOUND"}

// An attempt is what a request asked for, as far as it is written. It keeps nothing else of the request.
type attempt struct {
	action string
	names  []string
}

// attemptOf is what a request asked for that is about names.
func attemptOf(method string, request any, names []string) attempt {
	made := attempt{action: actionOf(method, request).Name, names: names}
	if len(names) <= mostDeniedNames && !slices.ContainsFunc(names, isTooLong) {
		return made
	}
	made.names = nil
	for _, name := range names[:min(len(names), mostDeniedNames)] {
		made.names = append(made.names, strings.Clone(name[:min(len(name), longestDeniedName)]))
	}
	return made
}

func isTooLong(name string) bool { return len(name) > longestDeniedName }

// answered tells of a call that was denied.
func (d denials) answered(by caller.Caller, made attempt, err error) {
	if err == nil || !slices.Contains(deniedReasons, service.ReasonOf(err)) {
		return
	}
	d.denied(by, made.action, made.names, service.ReasonOf(err))
}

// What a caller can have written of one request.
const (
	mostDeniedNames   = 10
	longestDeniedName = 200 // bytes, which is as long as a name may be that a caller chose; one that is only shown is cut
)

// connected tells of whoever connected to the operators' listener and is none.
func (d denials) connected(identity string) {
	d.denied(caller.Caller{Identity: identity}, "connect", nil, service.ReasonOf(service.ErrOperatorOnly))
}

func (d denials) denied(by caller.Caller, action string, names []string, reason string) {
	write, omitted := budget.SlotOf(by).MayBeDenied()
	if !write {
		return
	}
	d.log.Warn("denial", zap.String("caller", by.Identity), zap.String("action", action), zap.Strings("names", names),
		zap.String("reason", reason), zap.Int64("omitted", omitted))
}
