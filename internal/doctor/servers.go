package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// servers asks each server how it is, and how it is set up, as far as it answers four-letter words.
func (e *examination) servers(ctx context.Context) {
	told, newest, byID := false, int64(-1), map[int]string{}
	for _, server := range e.Servers {
		began := time.Now()
		answer, err := e.ensemble.Ask(ctx, server, "srvr")
		switch {
		case errors.Is(err, zookeeper.ErrSilent):
			e.findf(e.unknown(), server, "allow `srvr` in 4lw.commands.whitelist", "does not report its status")
		case err != nil, lineOf(answer, "Mode") == "":
			e.unanswered(ctx, server, err, time.Since(began))
			continue
		default:
			e.version(server, answer)
		}
		newest = max(newest, zxidIn(answer))
		told = e.setup(ctx, server, byID) || told
	}
	if !told {
		e.findf(e.unknown(), "ensemble", "allow it with 4lw.commands.whitelist=srvr,conf, or compare by hand",
			"no server answers `conf`, so that --tick-time %v and --sync-limit %d could not be compared with the ensemble's", e.TickTime, e.SyncLimit)
	}
	e.tokens(newest)
	if e.Credentials && !e.Secure {
		e.findf(Warning, "--zookeeper-auth-file", "use TLS towards the ensemble: --zookeeper-tls-ca", "the password is sent in clear")
	}
}

// zxidIn is the newest transaction that a server's status tells of; −1 if it tells of none.
func zxidIn(answer string) int64 {
	digits, ours := strings.CutPrefix(lineOf(answer, "Zxid"), "0x") // others write it in another way
	zxid, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || !ours {
		return -1
	}
	return zxid
}

// tokens judges whether the next fencing token, which is a transaction's number, is larger than the one that is remembered.
func (e *examination) tokens(newest int64) {
	switch {
	case e.RememberedToken == 0:
	case newest < 0:
		e.findf(e.unknown(), "ensemble", "allow `srvr` in 4lw.commands.whitelist",
			"no server reports its newest transaction, so that it could not be compared with the token %d", e.RememberedToken)
	case newest < e.RememberedToken:
		advice := fmt.Sprintf("stop all servers, write %d into the file acceptedEpoch of each, and start them", e.RememberedToken>>32)
		e.findf(Problem, "ensemble", advice,
			"was restored from an older state: its newest transaction is %d, so that it grants tokens again that are smaller than %d",
			newest, e.RememberedToken)
	}
}

// validity judges how much of the session timeout is of use.
func (e *examination) validity() {
	if e.Validity.Short() {
		e.findf(Warning, "--session-timeout", "choose a longer session timeout, or a shorter tickTime for the ensemble",
			"with %v, a lease is valid for %v after a heartbeat and for %v before the next one. A short loss of contact may end it "+
				"before its callers are notified", e.SessionTimeout, tenths(e.Validity.Most), tenths(e.Validity.Least))
	}
}

func tenths(d time.Duration) time.Duration { return d.Truncate(100 * time.Millisecond) }

// protection judges what keeps others from the ensemble, whose sessions belong to whoever reaches its port.
func (e *examination) protection() {
	if !e.Secure && slices.ContainsFunc(e.Servers, isElsewhere) {
		e.findf(Warning, "--zookeeper-tls-ca", "use TLS towards the ensemble", "the network can read and change what is written")
	}
	if !e.Credentials && !e.SASL {
		e.findf(Warning, "--zookeeper-auth-file", "give the sidecar credentials: this, --zookeeper-tls-cert or --zookeeper-sasl",
			"the sidecar has no credentials, so that its nodes are open to every client of the ensemble")
	}
}

// isElsewhere says whether a server is on another machine, as far as its address tells.
func isElsewhere(server string) bool {
	host, _, err := net.SplitHostPort(server)
	ip := net.ParseIP(host)
	return err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// lineOf is what stands behind a word and a colon.
func lineOf(answer, word string) string {
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, word+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// A release is a version of ZooKeeper.
type release [3]int

// productForm is the first line of a status: what the server is, and its version.
var productForm = regexp.MustCompile(`(?m)^(\S.*) version: (.*)$`)

var releaseForm = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

func releaseIn(text string) (release, bool) {
	match := releaseForm.FindStringSubmatch(text)
	if match == nil {
		return release{}, false
	}
	var parsed release
	for i := range parsed {
		parsed[i], _ = strconv.Atoi(match[i+1]) // digits, and few of them
	}
	return parsed, true
}

func (r release) before(other release) bool {
	for i := range r {
		if r[i] != other[i] {
			return r[i] < other[i]
		}
	}
	return false
}

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

// version judges a server's release: by the oldest that are kept up.
func (e *examination) version(server, answer string) {
	if product := productForm.FindStringSubmatch(answer); len(product) > 2 && product[1] != "Zookeeper" {
		e.findf(Warning, server, "use servers of ZooKeeper itself for work that must not happen twice",
			"is %s %s: it is not proved that a session there lives as long as a lock needs it to", product[1], product[2])
		return
	}
	runs, ok := releaseIn(lineOf(answer, "Zookeeper version"))
	switch {
	case !ok:
		e.findf(e.unknown(), server, "", "does not report its version")
	case runs.before(release{3, 5, 1}):
		e.findf(Problem, server, "upgrade to 3.9.5 or later", "runs %v, which has no containers: directories of locks remain forever", runs)
	case runs.before(release{3, 8, 6}), runs[1] == 9 && runs.before(release{3, 9, 5}):
		e.findf(Warning, server, "upgrade to 3.8.6, 3.9.5 or later", "runs %v, which lacks security and correctness fixes", runs)
	}
}

// setup compares a server's settings with the sidecar's, and its id with those of the servers before it. It says whether the server tells them.
func (e *examination) setup(ctx context.Context, server string, byID map[int]string) bool {
	answer, err := e.ensemble.Ask(ctx, server, "conf")
	if err != nil {
		return false
	}
	conf := numbersIn(answer)
	if tick, ok := conf["tickTime"]; ok {
		e.compare(server, "--tick-time", "tickTime", milliseconds(tick), e.TickTime)
	}
	if limit, ok := conf["syncLimit"]; ok {
		e.compare(server, "--sync-limit", "syncLimit", time.Duration(limit), time.Duration(e.SyncLimit))
	}
	if id := conf["serverId"]; id != 0 { // of a standalone server
		if other := byID[id]; other != "" {
			e.findf(Warning, server, "give each server an id of its own in its file myid; if both are names of one server, leave one of them out",
				"has the id %d, as %s has: sidecars may take sessions of one for sessions of the other", id, other)
		}
		byID[id] = server
	}
	least, most := milliseconds(conf["minSessionTimeout"]), milliseconds(conf["maxSessionTimeout"])
	if most > 0 && (e.SessionTimeout < least || e.SessionTimeout > most) {
		e.findf(Warning, server, fmt.Sprintf("choose one from %v to %v", least, most),
			"allows session timeouts from %v to %v: --session-timeout %v would be changed", least, most, e.SessionTimeout)
	}
	if connections := conf["maxClientCnxns"]; connections > 0 && connections <= e.MostLeases {
		e.findf(Warning, server, "raise maxClientCnxns, or lower --max-leases",
			"accepts %d connections from one address (maxClientCnxns), and each lease needs one: one server cannot serve --max-leases %d",
			connections, e.MostLeases)
	}
	return true
}

// compare judges a setting that the sidecar must not have smaller than the ensemble.
func (e *examination) compare(server, flag, setting string, theirs, ours time.Duration) {
	show := func(d time.Duration) string {
		if setting == "syncLimit" {
			return strconv.Itoa(int(d))
		}
		return d.String()
	}
	switch {
	case theirs > ours:
		e.findf(Problem, flag, "start the sidecar with "+flag+" "+show(theirs),
			"%s is %s on %s and %s here: a lock may be granted to another while its holder believes in it", setting, show(theirs), server, show(ours))
	case theirs < ours:
		e.findf(Note, flag, "start the sidecar with "+flag+" "+show(theirs), "%s is %s on %s and %s here: safe, but slower to notice", setting,
			show(theirs), server, show(ours))
	}
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// numbersIn reads lines with name=number.
func numbersIn(answer string) map[string]int {
	numbers := map[string]int{}
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if number, err := strconv.Atoi(value); err == nil {
			numbers[name] = number
		}
	}
	return numbers
}

// members looks at who belongs to the ensemble, which it keeps in a node.
func (e *examination) members(ctx context.Context) error {
	node, err := e.ensemble.Get(ctx, zookeeper.ConfigPath)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) && !errors.Is(err, recipes.ErrDenied) {
		return err
	}
	followed := e.FollowServers && e.followed(node.Data, err)
	participants, observers := 0, 0
	for line := range strings.Lines(string(node.Data)) {
		switch {
		case !strings.HasPrefix(line, "server."):
		case strings.Contains(line, ":observer"):
			observers++
		default:
			participants++
		}
	}
	e.judgeMembers(participants, observers, followed)
	return nil
}

// followed says whether sidecars can follow the ensemble's list of its servers, and reports what it has against it.
func (e *examination) followed(data []byte, err error) bool {
	var config zookeeper.EnsembleConfig
	if err == nil {
		config, err = zookeeper.ParseEnsembleConfig(data, e.Servers, e.Secure)
	}
	const flag, text = "--follow-ensemble", "only the servers of --zookeeper are used: %v"
	switch {
	case errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrDenied):
		e.findf(Note, flag, "let the sidecar read "+zookeeper.ConfigPath, text, err)
	case errors.Is(err, zookeeper.ErrPartServerList):
		e.findf(Note, flag, "reconfigure the ensemble with a client address for each server: host:port:port;host:port", text, err)
	case err != nil && !errors.Is(err, zookeeper.ErrNoServerList): // a standalone server is all there is
		e.findf(Warning, flag, "find out who writes to "+zookeeper.ConfigPath, text, err)
	}
	listed := config.Addresses()
	unlisted := slices.DeleteFunc(slices.Clone(e.Servers), func(server string) bool { return slices.Contains(listed, server) })
	if err == nil && len(unlisted) > 0 {
		e.findf(Note, "--zookeeper", "replace those that are no other names of these", "%s: the ensemble lists %s",
			strings.Join(unlisted, ", "), strings.Join(listed, ", "))
	}
	return err == nil
}

func (e *examination) judgeMembers(participants, observers int, followed bool) {
	if observers > 0 && !e.Observers {
		e.findf(Warning, "--behind-observers",
			"start the sidecar with --behind-observers if one of them may be behind another, or leave them out of --zookeeper",
			"the ensemble has %d observers", observers)
	}
	if participants > 0 && participants%2 == 0 {
		e.findf(Note, "ensemble", "add or remove a server", "%d servers vote: one fewer would survive as many failures", participants)
	}
	if participants > len(e.Servers) && !followed {
		e.findf(Note, "--zookeeper", "name all of them",
			"%d of %d servers are given: if these fail, the others are not tried", len(e.Servers), participants)
	}
}
