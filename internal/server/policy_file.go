package server

import (
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/internal/reload"
	"github.com/sidekeeper/sidekeeper/service"
)

// policyPause is how long a changed policy may stay unnoticed, once its file is settled.
const policyPause = time.Second

// A policyFile is the policy that lies in a file, read again when its content has changed. A version that cannot be used is
// reported, and the last good one stays in force. A new version is for calls that are made then, and for streams that are open.
type policyFile = reload.Files[*policy.Policy]

// openPolicy reads the file for the first time; without a name there is no policy, which is nil.
func openPolicy(name string, log, audit *zap.Logger, refused func(bool), applied func()) (*policyFile, error) {
	if name == "" {
		return nil, nil
	}
	parse := func(contents [][]byte) (*policy.Policy, error) {
		return policy.Parse(name, contents[0], policyActions(), service.BrokenNameRule)
	}
	report := func(parsed *policy.Policy, trouble error) {
		refused(trouble != nil)
		if trouble != nil {
			log.Error("policy not applied; the last valid version stays in force", zap.Error(trouble))
			audit.Info("policy", zap.String("file", name), zap.Int("rules", 0), zap.String("outcome", "REFUSED"))
			return
		}
		audit.Info("policy", zap.String("file", name), zap.Int("rules", parsed.Size()), zap.String("outcome", "OK"))
		applied()
		log.Info("policy applied", zap.String("file", name), zap.Int("rules", parsed.Size()))
	}
	file, err := reload.Open(parse, report, name)
	if err != nil {
		return nil, err
	}
	audit.Info("policy", zap.String("file", name), zap.Int("rules", file.Last().Size()), zap.String("outcome", "OK"))
	log.Info("policy in force", zap.String("file", name), zap.Int("rules", file.Last().Size()))
	return file, nil
}

// follow has limits and metrics go by the newest policy, if there is one.
func (o Options) follow(file *policyFile) {
	if file != nil {
		o.Limits.Follow(file.Last)
		o.Metrics.classOf = func(name string) string { return file.Last().Class(name) }
	}
}
