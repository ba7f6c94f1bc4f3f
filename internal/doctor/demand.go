package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// demands compares what each server demands of clients with what the sidecar gives. It is worth a session at each server where the sidecar is
// to authenticate by SASL, or has been refused.
func (e *examination) demands(ctx context.Context, err error) {
	if !e.SASL && !errors.Is(err, recipes.ErrAuthDemanded) {
		return
	}
	for _, server := range e.Servers {
		demand, err := e.ensemble.Demand(ctx, server)
		if err == nil { // or servers has told that it does not answer
			e.demand(server, demand)
		}
	}
	if err == nil {
		e.identities(ctx)
	}
}

// identities says who the servers take the sidecar for, by their rules: new nodes belong to that.
func (e *examination) identities(ctx context.Context) {
	known, err := e.ensemble.WhoAmI(ctx)
	switch bySASL := func(identity string) bool { return strings.HasPrefix(identity, "sasl:") }; {
	case err != nil: // servers before 3.7 do not tell
	case e.SASL && !slices.ContainsFunc(known, bySASL):
		e.findf(Problem, "ensemble", "see the servers' logs, and remove allowSaslFailedClients=true there",
			"knows the sidecar as %s, and not by SASL", strings.Join(known, ", "))
	default:
		e.findf(Note, "ensemble", "", "knows the sidecar as %s", strings.Join(known, ", "))
	}
}

func (e *examination) demand(server string, demand zookeeper.Demand) {
	const flag = "--zookeeper-sasl"
	offer := demand.Mechanism
	if offer == "" {
		offer = "none"
	}
	switch {
	case demand.Given != "" && demand.Mechanism == "":
		e.findf(Problem, server, "give its JAAS configuration a section Server; DIGEST-MD5 also takes zookeeper.fips-mode=false since 3.9; "+
			"allowSaslFailedClients=true hides a mechanism from the doctor",
			"takes part in no SASL, and the sidecar gives %s", demand.As)
	case demand.Given != "" && demand.Given != demand.Mechanism:
		e.findf(Problem, flag, "choose the mechanism of the servers", "%s takes part in %s, and the sidecar gives %s",
			server, demand.Mechanism, demand.As)
	case demand.Given == "" && demand.Authentication && demand.Mechanism != "":
		e.findf(Problem, flag, "choose the mechanism of the servers, unless they demand another scheme that the sidecar's credentials are not of",
			"%s demands authentication and takes part in SASL by %s, and the sidecar gives none", server, demand.Mechanism)
	case demand.Given == "" && demand.Authentication:
		e.findf(Problem, "--zookeeper-auth-file", "see enforce.auth.schemes of the servers: this is for digest, --zookeeper-tls-cert for x509",
			"%s demands authentication, and has no SASL", server)
	case demand.Authentication:
		e.findf(Note, server, "", "demands authentication, SASL by %s; the sidecar gives %s", offer, demand.As)
	default:
		e.findf(Note, server, "let it demand authentication: sessionRequireClientSASLAuth=true",
			"takes part in SASL by %s, and serves clients that do not; the sidecar gives %s", offer, demand.As)
	}
}
