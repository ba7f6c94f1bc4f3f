package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A trial is how an example of the help is tried, and what must come of it.
type trial struct {
	before   string       // what a shell does first, without failing
	beside   beside       // what runs meanwhile
	says     string       // a pattern that the output has; empty for no output
	then     string       // what a shell does when that was said
	andSays  string       // a pattern that the output has then
	ended    os.Signal    // by which it is ended; nil if it ends by itself
	code     int          // with which it exits; -1 if it dies of the signal
	silently bool         // whether there is no output
	alone    func(*stage) // sets the stage further
}

// A beside is a command that runs meanwhile. What the pattern finds in its output stands in the example in place of something else.
type beside struct{ command, pattern, insteadOf string }

// On the stage of these trials is a sidecar for development, whose address the commands find in their variables, and the scripts that
// examples run. Addresses, tokens and absolute paths are the stage's; all else is tried to the letter.
var trials = map[string]trial{
	"sidekeeper dev": {says: "callers: ", ended: os.Interrupt},
	"sidekeeper dev --listen 127.0.0.1:0 --fault suspend=2s/1m --fault delay-grants=500ms": {says: "callers: ", ended: syscall.SIGTERM},
	"sidekeeper dev --listen 0.0.0.0:7181 --listen-anywhere": {
		says: `callers: .*127\.0\.0\.1:\d+`, ended: os.Interrupt,
	},
	"sidekeeper dev --tls-folder ./certificates --metrics-listen 127.0.0.1:0 --log-format json": {
		says: `(?s)TLS: .*metrics: .*Ctrl-C here`, then: "test -s certificates/client.pem", ended: os.Interrupt,
	},
	"sidekeeper --address 127.0.0.1:7181 lock ls --output json": {says: `^\{"locks":\[\],"nextPageToken":""\}\n$`},
	"sidekeeper --address localhost:7181 --tls-ca ca.pem --tls-cert client.pem --tls-key client-key.pem health": {
		beside: beside{"sidekeeper dev --listen 127.0.0.1:0 --tls-folder .", `callers: .*127\.0\.0\.1(:\d+)`, ":7181"}, says: "^serving\n$",
	},

	"sidekeeper serve --zookeeper zk-1:2181,zk-2:2181,zk-3:2181": {says: `^listening on 127\.0\.0\.1:\d+`, ended: syscall.SIGTERM},
	"sidekeeper serve --zookeeper zk-1:2181 --listen 127.0.0.1:7181 --metrics-listen 127.0.0.1:9180": {
		says: "listening on 127.0.0.1:", ended: os.Interrupt,
	},
	"SIDEKEEPER_ZOOKEEPER=zk-1:2181 SIDEKEEPER_SESSION_TIMEOUT=20s sidekeeper serve --log-format console": {
		says: "listening on 127.0.0.1:", ended: os.Interrupt,
	},

	"sidekeeper lock run reports -- ./make-reports --all":            {says: `^reports --all under \d+\n$`},
	"sidekeeper lock run reports --wait 10s -- ./make-reports --all": {says: `^reports --all under \d+\n$`},
	`sidekeeper lock run nightly --try -- ./clean-up || echo "another machine does it"`: {
		beside: beside{"sidekeeper lock run nightly -- " + holding, "(holding)", "-"}, says: "another machine does it\n$",
	},
	`sidekeeper lock run shop/index --mode read -- sh -c 'echo "reading with token $SIDEKEEPER_FENCING_TOKEN"'`: {
		says: `^reading with token \d+\n$`,
	},
	"sidekeeper lock run nightly --once 2026-11-29 -- ./make-reports --all": {
		says: `^nightly --all under \d+\n$`, then: "sidekeeper lock run nightly --once 2026-11-29 -- false",
	},
	`sidekeeper lock claim staging --for 2h --reason "terraform apply" --claim-file claim`: {
		says: `^staging is claimed until 20.*, with fencing token \d+\n$`, then: "test -s claim",
	},
	`sidekeeper lock claim production --for 30m --reason "release 4711" --wait 10m`: {
		says: `[0-9a-f]{32}\n$`, then: "sidekeeper lock show production", andSays: "release 4711",
	},
	"sidekeeper lock extend --claim-file claim --for 2h":                        {before: claimed, says: `^claimed until 20.*\n$`},
	"sidekeeper lock release --claim-file claim":                                {before: claimed, says: "^released\n$"},
	"sidekeeper once ls nightly":                                                {before: done, says: `(?m)^2026-11-29 +succeeded +1 `},
	"sidekeeper once ls nightly --output json":                                  {before: done, says: `"state":"STATE_SUCCEEDED"`},
	"sidekeeper once show nightly 2026-11-29":                                   {before: done, says: `(?m)^2026-11-29 +succeeded +1 `},
	"sidekeeper once forget nightly 2026-11-29":                                 {before: done, says: "^2026-11-29 of nightly is forgotten\n$"},
	"sidekeeper once forget nightly 2026-11-29 --wait 1m":                       {before: done, says: "^2026-11-29 of nightly is forgotten\n$"},
	"sidekeeper schedule ls":                                                    {before: planned, says: `(?m)^nightly +0 3 \* \* \* +UTC +20`},
	"sidekeeper schedule ls cron --output json":                                 {before: planned, says: `^\{"schedules":\[\],`},
	"sidekeeper schedule show nightly":                                          {before: planned, says: `(?m)^nightly .* waiting +-$`},
	"sidekeeper schedule show nightly --output json":                            {before: planned, says: `"timeZone":"UTC"`},
	"sidekeeper schedule history nightly":                                       {before: planned, says: "^TICK +STATE "},
	"sidekeeper schedule history nightly --output json":                         {before: planned, says: `^\{"outcomes":\[\]\}`},
	"sidekeeper schedule put nightly '0 3 * * *' --time-zone Europe/Berlin":     {says: `(?m)^nightly +0 3 \* \* \* +Europe/Berlin +20`},
	"sidekeeper schedule put nightly '0 3 * * *' --misfire once --on-loss skip": {says: `(?m)^nightly .* waiting +-$`},
	"sidekeeper schedule pause nightly":                                         {before: planned, says: `(?m)^nightly .* paused +-$`},
	"sidekeeper schedule resume nightly":                                        {before: planned, says: `(?m)^nightly .* waiting +-$`},
	"sidekeeper schedule run nightly": {
		before: planned, says: "^run-[0-9A-Z]+ of nightly is asked for\n$",
	},
	"sidekeeper schedule run nightly --id after-the-repair": {
		before: planned, says: "^after-the-repair of nightly is asked for\n$",
	},
	"sidekeeper schedule reset nightly":           {before: planned, says: `(?m)^nightly .* waiting +-$`},
	"sidekeeper schedule rm nightly":              {before: planned, says: "^nightly is removed\n$"},
	"sidekeeper cron run /etc/sidekeeper/crontab": {before: crontabs, says: "1 lines of ", ended: os.Interrupt},
	"sidekeeper cron run /etc/sidekeeper/crontab --time-zone Europe/Berlin --prefix billing": {
		before: crontabs, says: "1 lines of ", ended: syscall.SIGTERM,
	},
	"sidekeeper assign define orders --count 16":           {says: "^orders has 16 items\n$"},
	"sidekeeper assign define orders --count 8 --drop":     {before: assignable, says: "^orders has 8 items\n$"},
	"sidekeeper assign define tenants acme globex initech": {says: "^tenants has 3 items\n$"},
	"sidekeeper assign ls":                                 {before: assignable, says: `(?m)^orders +16 +0 +16$`},
	"sidekeeper assign ls shop --output json":              {before: assignable, says: `^\{"sets":\[\],`},
	"sidekeeper assign show orders":                        {before: assignable, beside: worked, says: "^orders: 16 items, 1 members, "},
	"sidekeeper assign show orders --holders":              {before: assignable, says: `(?m)^15 +- +- +- +- +-$`},
	"sidekeeper assign show orders --watch": {
		before: assignable, says: "^orders: 16 items, ", then: "sidekeeper assign define orders --count 17", andSays: "orders: 17 items, ",
		ended: os.Interrupt, code: -1,
	},
	"sidekeeper assign show orders --output json": {before: assignable, says: `"set":"orders"`},
	"sidekeeper assign drain orders web-1":        {before: assignable, beside: worked, says: "^web-1 of orders gets no items any "},
	"sidekeeper assign capacity orders web-1 4":   {before: assignable, beside: worked, says: "^web-1 of orders takes up to 4 items\n$"},
	"sidekeeper assign rm orders":                 {before: assignable, says: "^orders is removed\n$"},
	`sidekeeper assign run orders -- sh -c 'exec ./work --shard "$SIDEKEEPER_ITEM"'`: {
		before: assignable, says: `(?m)^working on orders/15 with --shard 15$`, ended: os.Interrupt,
	},
	"sidekeeper assign run orders --member web-1 --capacity 4 --kill-grace 30s -- ./work": {
		before: assignable, says: `(?m)^working on orders/\d+ with $`, ended: syscall.SIGTERM,
	},
	"sidekeeper lock run accounts/7 accounts/9 -- ./transfer": {
		says: `^accounts/7 accounts/9 \d+ \d+ under accounts/7:\d+ accounts/9:\d+\n$`,
	},
	"sidekeeper lock ls":                    {beside: held, says: `(?m)^reports +1 +0$`},
	"sidekeeper lock ls shop --output json": {before: "sidekeeper lock run shopping -- true", says: `^\{"locks":\[\],`},
	"sidekeeper lock show reports":          {beside: held, says: `(?m)^held +exclusive +\d+ `},
	"sidekeeper lock show reports --watch": {
		says: "^reports is free\n", then: "sidekeeper lock run reports -- true", andSays: "held +exclusive", ended: os.Interrupt, code: -1,
	},
	"sidekeeper lock show reports --output json":                      {beside: held, says: `"token":"\d+"`},
	"sidekeeper lock why reports":                                     {beside: held, says: `(?m)^reports +held +[0-9a-f]{8} `},
	"sidekeeper lock why reports --output json":                       {beside: held, says: `"lease":"[0-9a-f]{8}"`},
	`sidekeeper lock revoke reports --reason "the machine goes down"`: {beside: held, says: "^holders asked: 1\n$"},
	"sidekeeper lock revoke reports --grace 30s":                      {beside: held, says: "^holders asked: 1\n$"},
	`sidekeeper lock break reports --token 4294967321 --reason "it hangs"`: {
		beside: held, says: `^hold \d+ of reports: ended by its sidecar, or with its lease\n$`,
	},
	`sidekeeper lock break reports --token 4294967321 --force-after 1m --reason "its machine is gone"`: {
		beside: held, says: `^hold \d+ of reports: ended by its sidecar, or with its lease\n$`,
	},

	"sidekeeper agree begin transfers --participant a --participant b":                          {says: "^[0-9A-Z]{26}\n$"},
	`sidekeeper agree begin transfers --participant a --deadline 10s --value "100 from a to b"`: {says: "^[0-9A-Z]{26}\n$"},

	`sidekeeper agree vote transfers "$(cat agreement)" a`: {before: begun, says: "^COMMIT\n$"},
	`sidekeeper agree abort transfers "$(cat agreement)"`:  {before: begun, says: "^ABORT\n$"},
	`sidekeeper agree await transfers "$(cat agreement)"`: {
		before: begun + ` && sidekeeper agree vote transfers "$(cat agreement)" a`, says: "^COMMIT\n$",
	},
	"sidekeeper agree ls transfers":               {before: begun, says: `(?m)^[0-9A-Z]{26} +- +a +-$`},
	"sidekeeper agree ls transfers --output json": {before: begun, says: `"participants":\["a"\]`},
	`sidekeeper agree forget transfers "$(cat agreement)"`: {
		before: begun + ` && sidekeeper agree abort transfers "$(cat agreement)"`, silently: true,
		then: "! sidekeeper agree ls transfers | grep -q ' a '",
	},

	`sidekeeper queue put mail "to: me"`: {silently: true, then: "sidekeeper queue take mail --try | grep -q '^to: me$'"},
	"sidekeeper queue put mail --priority -1 <letter.json": {
		before: "echo hello >letter.json", silently: true, then: "sidekeeper queue take mail --try | grep -q '^hello$'",
	},
	`sidekeeper queue put mail "to: me, tomorrow" --delay 24h`: {
		silently: true, then: "sidekeeper queue ls | grep -q '^mail  *1  *0  *1$'",
	},
	"sidekeeper queue take mail":                          {before: `sidekeeper queue put mail "to: me"`, says: "^to: me\n$"},
	`sidekeeper queue take mail --try || echo "no mail"`:  {says: "(?m)^no mail$"},
	"sidekeeper queue take mail --try":                    {before: `sidekeeper queue put mail "to: me"`, says: "^to: me\n$"},
	"sidekeeper queue take mail --wait 10s --output json": {before: `sidekeeper queue put mail "to: me"`, says: `"values":\["dG86IG1l"\]`},
	"sidekeeper queue ls":                                 {before: `sidekeeper queue put mail "to: me"`, says: `(?m)^mail +1 +0 +0$`},
	"sidekeeper queue ls shop --output json":              {before: `sidekeeper queue put shopping "to: me"`, says: `^\{"queues":\[\],`},

	"sidekeeper barrier set migration":         {silently: true, then: "! sidekeeper barrier wait migration --wait 100ms"},
	"sidekeeper barrier ls":                    {before: "sidekeeper barrier set migration", says: `(?m)^migration +set +0 +0$`},
	"sidekeeper barrier ls shop --output json": {before: "sidekeeper barrier set shopping", says: `^\{"barriers":\[\],`},
	"sidekeeper barrier rm migration": {
		before: "sidekeeper barrier set migration", silently: true, then: "sidekeeper barrier wait migration",
	},
	"sidekeeper barrier wait migration":                                       {silently: true},
	"sidekeeper barrier wait migration --wait 10m":                            {silently: true},
	"sidekeeper barrier enter load-test 1 -- ./make-reports --all":            {says: `^ --all under\s*$`},
	"sidekeeper barrier enter load-test 1 --wait 10m -- ./make-reports --all": {says: `^ --all under\s*$`},

	"sidekeeper semaphore create reports 5": {silently: true, then: "sidekeeper semaphore ls | grep -q '^reports  *5$'"},
	"sidekeeper semaphore run reports -- ./make-reports --all": {
		before: "sidekeeper semaphore create reports 5", says: `^reports --all under\s*$`,
	},
	"sidekeeper semaphore run reports --wait 10s -- ./make-reports --all": {
		before: "sidekeeper semaphore create reports 5", says: `^reports --all under\s*$`,
	},
	"sidekeeper semaphore run reports --permits 2 --try -- ./make-reports --all": {
		before: "sidekeeper semaphore create reports 5", says: `^reports --all under\s*$`,
	},
	"sidekeeper semaphore run workers --numbered --quarantine 5m -- ./worker": {
		before: "sidekeeper semaphore create workers 5", says: `^worker 0 of workers\s*$`,
		then: "sidekeeper semaphore run workers --numbered -- ./worker", andSays: `^worker 0 of workers\s*$`,
	},
	"sidekeeper semaphore ls":                    {before: "sidekeeper semaphore create reports 5", says: `(?m)^reports +5$`},
	"sidekeeper semaphore ls shop --output json": {before: "sidekeeper semaphore create shopping 5", says: `^\{"semaphores":\[\],`},
	"sidekeeper semaphore show reports":          {before: "sidekeeper semaphore create reports 5", says: `^reports: 0 of 5 held\n$`},
	"sidekeeper semaphore show reports --watch": {
		before: "sidekeeper semaphore create reports 5", says: "^reports: 0 of 5 held\n", then: "sidekeeper semaphore run reports -- true",
		andSays: "held +1 +", ended: os.Interrupt, code: -1,
	},
	`sidekeeper semaphore resize reports 2 --reason "the database is slow"`: {
		before: "sidekeeper semaphore create reports 5 || true", says: "^permits asked for: 0\n$",
	},
	"sidekeeper semaphore resize reports 1 --grace 30s": {
		before: "sidekeeper semaphore create reports 5 || true", says: "^permits asked for: 0\n$",
	},

	"sidekeeper elect run reports --candidate host-1 --value host-1:8080 -- ./serve --port 8080": {
		says: `^serving --port 8080 as reports\n$`,
	},
	"sidekeeper elect run reports --wait 10s -- ./serve --port 8080": {says: `^serving --port 8080 as reports\n$`},
	"sidekeeper elect observe reports": {
		says: "^no leader\n", then: "sidekeeper elect run reports --candidate host-1 -- true", andSays: `host-1 leads in term \d+\n`,
		ended: os.Interrupt, code: -1,
	},
	"sidekeeper elect observe reports --output json":                        {says: `^\{"vacant":\{\}\}\n`, ended: os.Interrupt, code: -1},
	"sidekeeper elect transfer reports host-2":                              {beside: leading, silently: true},
	`sidekeeper elect transfer reports host-2 --reason "host-1 is drained"`: {beside: leading, silently: true},
	"sidekeeper elect transfer reports host-2 --grace 30s":                  {beside: leading, silently: true},

	"sidekeeper members join web web-1 -- ./serve --port 8080": {says: `^serving --port 8080 as web-1\n$`},
	"sidekeeper members join web web-1 --metadata port=8080 -- ./serve --port 8080": {
		says: `^serving --port 8080 as web-1\n$`,
	},
	"sidekeeper members join web web-1 --on-conflict wait --wait 30s --on-loss rejoin -- ./serve --port 8080": {
		says: `^serving --port 8080 as web-1\n$`,
	},
	"sidekeeper members ls web":               {beside: joined, says: `(?m)^web-7 +\d+ `},
	"sidekeeper members ls web --output json": {beside: joined, says: `"member":"web-7"`},
	"sidekeeper members watch web": {
		says: "^web has no members\n", then: "sidekeeper members join web web-2 -- true", andSays: `joined web-2 \d+`, ended: os.Interrupt, code: -1,
	},
	"sidekeeper members watch web --output json": {
		says: `"group":"web"`, then: "sidekeeper members join web web-2 -- true", andSays: `"joined":\[\{"member":"web-2"`,
		ended: syscall.SIGTERM, code: -1,
	},
	"sidekeeper groups":                    {beside: joined, says: `(?m)^web +1 +no$`},
	"sidekeeper groups shop --output json": {says: `^\{"groups":\[\],`},
	"sidekeeper groups ls":                 {before: "sidekeeper groups create web", says: `(?m)^web +\d+ +yes$`},
	"sidekeeper groups ls shop --output json": {
		before: "sidekeeper groups create shop/web", says: `"group":"shop/web","members":0,"permanent":true`,
	},
	"sidekeeper groups create shop/web": {silently: true},
	"sidekeeper groups rm shop/web":     {before: "sidekeeper groups create shop/web", silently: true},
	`sidekeeper groups rm shop/web --force --reason "moved to another fleet"`: {
		beside: beside{"sidekeeper members join shop/web web-7 -- " + holding, "(holding)", "-"}, silently: true,
	},

	"sidekeeper lock run shop -- sidekeeper config put shop/stock 41": {says: `^shop/stock has version \d+\n$`},
	"sidekeeper config put shop/stock 41 --guard reports:4294967321":  {beside: held, says: `^shop/stock has version \d+\n$`},
	"sidekeeper config put shop/limit 250":                            {says: `^shop/limit has version \d+\n$`},
	"sidekeeper config put shop/motd --file motd.txt --if-version 4": {
		before: "for i in 1 2 3 4; do sidekeeper config put shop/motd $i; done; echo hello >motd.txt", says: "^shop/motd has version 5\n$",
	},
	"date | sidekeeper config put shop/started - --if-missing": {says: `^shop/started has version \d+\n$`},
	"sidekeeper config get shop/limit":                         {before: "sidekeeper config put shop/limit 250", says: "^250\n?$"},
	"sidekeeper config get shop/limit --linearizable --output json": {
		before: "sidekeeper config put shop/limit 250", says: `^\{"key":"shop/limit","text":"250",`,
	},
	"sidekeeper config ls":                       {before: "sidekeeper config put shop/limit 250", says: `(?m)^shop/limit +\d+ +\d+ +3 +250$`},
	"sidekeeper config ls shop":                  {before: "sidekeeper config put shop/limit 250", says: `(?m)^shop/limit +\d+ +\d+ +3 +250$`},
	"sidekeeper config ls shop/db --output json": {before: "sidekeeper config put shop/db/host a", says: `^\{"entries":\[\{"key":"shop/db/host"`},
	"sidekeeper config rm shop/limit":            {before: "sidekeeper config put shop/limit 250", says: "^keys deleted: 1\n$"},
	"sidekeeper config rm shop/limit --if-version 4": {
		before: "for i in 1 2 3 4; do sidekeeper config put shop/limit $i; done", says: "^keys deleted: 1\n$",
	},
	"sidekeeper config rm shop --recursive": {
		before: "sidekeeper config put shop/a 1; sidekeeper config put shop/b 2", says: "^keys deleted: 2\n$",
	},
	"sidekeeper config edit shop/motd": {says: "version", then: "sidekeeper config get shop/motd | grep -q 'edited by vi'"},
	"EDITOR=nano sidekeeper config edit shop/motd": {
		says: "version", then: "sidekeeper config get shop/motd | grep -q 'edited by nano'",
	},
	"sidekeeper config watch shop/db": {
		says: "(?m)^synced$", then: "sidekeeper config put shop/db/host a", andSays: "(?m)^put +shop/db/host", ended: os.Interrupt,
	},
	"sidekeeper config watch --exact shop/limit --exec 'systemctl reload shop'": {
		says: "told: reload shop, 0 changes", then: "sidekeeper config put shop/limit 250", andSays: "told: reload shop, 1 changes",
		ended: os.Interrupt,
	},
	"sidekeeper config watch shop --output json": {says: `(?m)^\{"event":"synced"\}$`, ended: syscall.SIGTERM},
	"sidekeeper config export shop >shop.yaml": {
		before: "sidekeeper config put shop/limit 250", silently: true, then: `grep -q '^limit: "250"$' shop.yaml`,
	},
	"sidekeeper config export shop --to shop": {
		before: "rm -rf shop; sidekeeper config put shop/limit 250", silently: true, then: `test "$(cat shop/limit)" = 250`,
	},
	"sidekeeper config import shop shop.yaml --prune --dry-run": {
		before: `sidekeeper config put shop/limit 250; echo 'motd: "staging"' >shop.yaml`, says: `(?s)shop/limit.*shop/motd|shop/motd.*shop/limit`,
	},
	"sidekeeper config import shop ./settings": {
		before: "mkdir -p settings/db; echo a >settings/db/host", says: "shop/db/host", then: "sidekeeper config get shop/db/host",
	},
	"sed s/staging/production/ shop.yaml | sidekeeper config import shop -": {
		before: `echo 'motd: "staging"' >shop.yaml`, says: "shop/motd", then: `test "$(sidekeeper config get shop/motd)" = production`,
	},
	"sidekeeper config sync shop /run/shop --signal /run/shop.pid:SIGHUP": {
		alone:  (*stage).hearsHangUp,
		before: "sidekeeper config put shop/limit 250",
		beside: beside{`sh -c 'trap "touch run/told; exit" HUP; echo $$ >run/shop.pid; echo ready; while :; do sleep 0.05; done'`, "(ready)", "-"},
		then:   "until test -e run/told; do sleep 0.05; done", silently: true, ended: os.Interrupt,
	},
	"sidekeeper config sync shop /run/shop --exec 'systemctl reload shop'": {
		before: "rm -rf run/shop; sidekeeper config put shop/limit 250", says: "told: reload shop", then: `test "$(cat run/shop/limit)" = 250`,
		ended: os.Interrupt,
	},
	"sidekeeper config sync shop /run/shop --once    # before the program starts": {
		before: "rm -rf run/shop; sidekeeper config put shop/limit 250", silently: true, then: `test "$(cat run/shop/limit)" = 250`,
	},

	"sidekeeper seq create invoices --first 1000": {silently: true, then: `test "$(sidekeeper seq next invoices)" = 1000`},
	"sidekeeper seq next invoices":                {before: "sidekeeper seq create invoices || true", says: `^\d+\n$`},
	"sidekeeper seq next invoices --count 3 --hex": {
		before: "sidekeeper seq create invoices || true", says: `^([0-9a-f]{16}\n){3}$`,
	},
	"sidekeeper seq next events --relaxed --output json": {before: "sidekeeper seq create events", says: `^\{"first":"1","last":"1",`},
	"sidekeeper seq ls":                         {before: "sidekeeper seq create invoices", says: `(?m)^invoices +0 `},
	"sidekeeper seq ls shop --output json":      {says: `^\{"sequences":\[\],`},
	"sidekeeper seq get invoices":               {before: "sidekeeper seq create invoices", says: "^0\n$"},
	"sidekeeper seq get invoices --output json": {says: `^\{"lastIssued":"0",`},
	"sidekeeper seq create invoices":            {silently: true},
	"sidekeeper seq create orders --first 100000 --output json": {
		says: `^\{"incarnation":"\d+"\}\n$`, then: `test "$(sidekeeper seq next orders)" = 100000`,
	},
	"sidekeeper seq advance invoices 250000":       {before: "sidekeeper seq create invoices", says: "^250000\n$"},
	"sidekeeper seq advance offsets -- -100":       {before: "sidekeeper seq create offsets --first -1000", says: "^-100\n$"},
	"sidekeeper seq rm invoices":                   {before: "sidekeeper seq create invoices", silently: true},
	"sidekeeper leases":                            {beside: held, says: `(?m) lock reports +`},
	"sidekeeper leases --output json":              {beside: held, says: `"kind":"lock","name":"reports","held":true`},
	"sidekeeper top":                               {says: "(?i)leases"},
	"sidekeeper top --once --admin 127.0.0.1:7182": {says: "(?i)leases"},
	"sidekeeper top --output json":                 {says: `^\{`},
	"sidekeeper console":                           {says: `^http://127\.0\.0\.1:\d+/#token=\w{26}\n`, ended: os.Interrupt},
	"sidekeeper console --listen 127.0.0.1:7184":   {says: `/#token=`, ended: syscall.SIGTERM},
	"sidekeeper console --address 127.0.0.1:7181":  {says: `/#token=`, ended: os.Interrupt},
	"sidekeeper health":                            {says: "^serving\n$"},
	"sidekeeper health --ready --timeout 2s":       {says: "^serving\n$"},
	"sidekeeper health --ready --output json":      {says: `^\{"serving":true\}\n$`},

	"sidekeeper quota set /sidekeeper/config/billing --nodes 1000 --zookeeper zk-1:2181":                  {silently: true},
	"sidekeeper quota ls --zookeeper zk-1:2181":                                                           {says: `^PATH +NODES `},
	"sidekeeper quota set /sidekeeper/config/billing --nodes 1000 --bytes 10000000 --zookeeper zk-1:2181": {silently: true},
	"sidekeeper quota ls /sidekeeper/config --zookeeper zk-1:2181 --output json":                          {says: `^\[\]\n$`},
	"sidekeeper quota rm /sidekeeper/config/billing --zookeeper zk-1:2181": {
		alone: func(s *stage) {
			s.shell(strings.NewReplacer(s.replaced...).Replace("sidekeeper quota set /sidekeeper/config/billing --nodes 1 --zookeeper zk-1:2181"))
		}, silently: true,
	},

	"sidekeeper doctor --zookeeper zk-1:2181,zk-2:2181,zk-3:2181": {
		says: "(?s)^warning: .*note: --tick-time: tickTime is 1s", code: exitWarnings,
	},
	"sidekeeper doctor --zookeeper zk-1:2181 --tick-time 1s --session-timeout 10s shop/orders": {
		says: "^warning: --zookeeper-auth-file: ", code: exitWarnings,
	},
	"sidekeeper doctor --zookeeper zk-1:2181,zk-2:2181,zk-3:2181 --sessions": {
		says: `^SESSION +SERVER +CLIENT`,
	},
	"SIDEKEEPER_ZOOKEEPER=zk-1:2181 sidekeeper doctor --output json": {
		says: `^\[\{"severity":"warning"`, code: exitWarnings,
	},
	"sidekeeper inject-webhook --pattern pattern.json --tls-cert tls.crt --tls-key tls.key --shutdown-delay 0s": {
		says: `^listening on 127\.0\.0\.1:\d+`, ended: syscall.SIGTERM, alone: (*stage).setInjector,
	},
	"sidekeeper version":               {says: "^sidekeeper .*, revision .*, go"},
	"sidekeeper version --output json": {says: `"go":"go`},
}

// planned plans a schedule.
const planned = "sidekeeper schedule put nightly '0 3 * * *'"

// assignable defines a set of items.
const assignable = "sidekeeper assign define orders --count 16"

// claimed claims a lock.
const claimed = "sidekeeper lock claim staging --for 1h --reason test --claim-file claim"

const crontabs = "mkdir -p etc/sidekeeper && echo '0 3 * * * make-reports' > etc/sidekeeper/crontab"

// done has work done.
const done = "sidekeeper lock run nightly --once 2026-11-29 -- true"

// begun begins an agreement whose only participant is a.
const begun = "sidekeeper agree begin transfers --participant a >agreement"

const holding = "sh -c 'echo holding $SIDEKEEPER_FENCING_TOKEN; exec sleep 60'"

var (
	held    = beside{"sidekeeper lock run reports -- " + holding, `holding (\d+)`, "4294967321"}
	leading = beside{"sidekeeper elect run reports --candidate host-2 -- " + holding, "(holding)", "-"}
	worked  = beside{"sidekeeper assign run orders --member web-1 -- ./work", "(web-1 of orders has)", "-"}
	joined  = beside{"sidekeeper members join web web-7 -- " + holding, "(holding)", "-"}
)

// A stage is where examples are tried: a sidecar with an ensemble, and a folder with scripts.
type stage struct {
	t        *testing.T
	folder   string
	replaced []string // pairs: what an example has, and what there is instead
	environ  []string
}

// scripts are what examples run, by the names of their files.
var scripts = map[string]string{
	"bin/systemctl": `echo "told: $* shop, $SIDEKEEPER_CONFIG_CHANGES changes" | sed 's/ shop shop/ shop/'`,
	"bin/vi":        `echo edited by vi >"$1"`,
	"bin/nano":      `echo edited by nano >"$1"`,
	"make-reports":  `echo "$SIDEKEEPER_LOCK_NAME$SIDEKEEPER_SEMAPHORE_NAME $* under $SIDEKEEPER_FENCING_TOKEN"`,
	"clean-up":      "echo cleaning",
	"transfer":      `echo "$SIDEKEEPER_LOCK_NAME $SIDEKEEPER_FENCING_TOKEN under $SIDEKEEPER_GUARDS"`,
	"work":          `echo "working on $SIDEKEEPER_SET/$SIDEKEEPER_ITEM with $*"; exec sleep 600`,
	"worker":        `echo "worker $SIDEKEEPER_NUMBER of $SIDEKEEPER_SEMAPHORE_NAME"`,
	"serve":         `echo "serving $* as $SIDEKEEPER_MEMBER_NAME$SIDEKEEPER_ELECTION_NAME"`,
}

// buildProgram returns a folder with sidekeeper in it as it is released: with the race detector, hundreds of commands start slowly.
func buildProgram(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", folder+"/", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return folder
}

func newStage(t *testing.T, program string) *stage {
	t.Helper()
	s := &stage{t: t, folder: t.TempDir()}
	for _, folder := range []string{"bin", "run"} {
		if err := os.Mkdir(filepath.Join(s.folder, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.environ = append(os.Environ(), "PATH="+filepath.Join(s.folder, "bin")+":"+program+":"+os.Getenv("PATH"), "EDITOR=", "VISUAL=",
		"TMPDIR="+t.TempDir(), "SIDEKEEPER_LISTEN=127.0.0.1:0", "SIDEKEEPER_OPERATOR_LISTEN=unix://"+filepath.Join(s.folder, "operator"))
	welcome := s.runs("sidekeeper dev --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --log-level warn").reads(t, "Ctrl-C here")
	address, admin, ensemble := said(t, welcome, callers), said(t, welcome, `top --admin (\S+)`), said(t, welcome, `ensemble:  (\S+), `)
	s.replaced = []string{
		"zk-1:2181,zk-2:2181,zk-3:2181", ensemble, "zk-1:2181", ensemble, "--listen 127.0.0.1:7181", "--listen 127.0.0.1:0",
		"0.0.0.0:7181", "127.0.0.1:0", "127.0.0.1:9180", "127.0.0.1:0", "127.0.0.1:7182", admin, "127.0.0.1:7184", "127.0.0.1:0",
		"127.0.0.1:7181", address, " /run/", " " + s.folder + "/run/", " /etc/", " " + s.folder + "/etc/",
	}
	s.environ = append(s.environ, sidekeeper.AddressVariable+"="+address, operatorAddressVariable+"="+address, adminVariable+"="+admin)
	return s
}

// hearsHangUp has commands trap SIGHUP also where the tests were started with it ignored, as by nohup.
func (s *stage) hearsHangUp() {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	s.t.Cleanup(func() { signal.Stop(heard) })
}

// setInjector lays out what an injector needs.
func (s *stage) setInjector() {
	pattern, err := os.ReadFile(chartPattern(s.t, "injector"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.folder, "pattern.json"), pattern, 0o600); err != nil {
		s.t.Fatal(err)
	}
	issuer := s.runs("sidekeeper dev --listen 127.0.0.1:0 --tls-folder .")
	issuer.reads(s.t, "Ctrl-C here")
	s.ends(issuer)
	s.shell("cp server.pem tls.crt && cp server-key.pem tls.key")
}

// runs starts one command in a shell that it replaces, so that signals reach it.
func (s *stage) runs(line string) *typedCommand {
	s.t.Helper()
	if regexp.MustCompile(`^[A-Z_]+=`).MatchString(line) {
		line = "env " + line
	}
	if !strings.Contains(line, " | ") && !strings.Contains(line, " || ") {
		line = "exec " + line
	}
	return typedIn(s.t, s.folder, s.environ, "/bin/sh", "-c", line)
}

// shell does something to its end, without failing.
func (s *stage) shell(script string) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "/bin/sh", "-ec", script)
	command.Dir, command.Env, command.WaitDelay = s.folder, s.environ, patience
	ended := make(chan error, 1)
	var output []byte
	go func() {
		var err error
		output, err = command.CombinedOutput()
		ended <- err
	}()
	if err := receive(s.t, ended); err != nil {
		s.t.Fatalf("%s: %v: %s", script, err, output)
	}
}

// tries one example.
func (s *stage) tries(example string, trial trial) {
	s.t.Helper()
	if trial.alone != nil {
		trial.alone(s)
	}
	s.shell(trial.before)
	replaced := s.replaced
	if trial.beside.command != "" {
		other := s.runs(trial.beside.command)
		defer s.ends(other)
		seen := other.reads(s.t, trial.beside.pattern)
		replaced = append([]string{trial.beside.insteadOf, said(s.t, seen, trial.beside.pattern)}, replaced...)
		if trial.beside.insteadOf == "-" {
			replaced = s.replaced
		}
	}
	running := s.runs(strings.NewReplacer(replaced...).Replace(example))
	if !trial.silently {
		running.reads(s.t, trial.says)
	}
	if trial.ended == nil {
		s.sees(running, trial)
		s.shell(trial.then)
		return
	}
	s.shell(trial.then)
	if trial.andSays != "" {
		running.reads(s.t, trial.andSays)
	}
	if err := running.command.Process.Signal(trial.ended); err != nil {
		s.t.Fatal(err)
	}
	s.sees(running, trial)
}

// ends has a command end that has run beside an example, and waits until it has left nothing behind.
func (s *stage) ends(other *typedCommand) {
	_ = other.command.Process.Signal(syscall.SIGTERM) // unless the example has ended it
	for range other.lines {
	}
	_ = other.command.Wait()
}

// sees compares how a command ends.
func (s *stage) sees(running *typedCommand, trial trial) {
	s.t.Helper()
	for open := true; open; {
		line := ""
		select {
		case line, open = <-running.lines:
		case <-time.After(patience):
			s.t.Fatalf("it does not end; it has said\n%s", running.seen)
		}
		if open {
			running.seen += line + "\n"
		}
	}
	_ = running.command.Wait()
	if code := running.command.ProcessState.ExitCode(); code != trial.code {
		s.t.Errorf("exits with %d, not %d, and says\n%s", code, trial.code, running.seen)
	}
	if trial.silently && running.seen != "" {
		s.t.Errorf("says\n%s", running.seen)
	}
	if !trial.silently && !regexp.MustCompile(trial.says).MatchString(running.seen) {
		s.t.Errorf("says\n%s\nand not %s", running.seen, trial.says)
	}
}

// everyCommand goes through the commands that are ours.
func everyCommand(do func(*cobra.Command)) {
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		do(command)
		for _, below := range command.Commands() {
			visit(below)
		}
	}
	visit(newRootCommand(&reach{}))
}

// examplesOf are the lines of a command's examples.
func examplesOf(command *cobra.Command) (lines []string) {
	for line := range strings.Lines(command.Example) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// Every example of the help is tried, each on a stage that its command's others have left behind.
func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	program, untried := buildProgram(t), map[string]bool{}
	for example := range trials {
		untried[example] = true
	}
	everyCommand(func(command *cobra.Command) {
		examples := examplesOf(command)
		for _, example := range examples {
			delete(untried, example)
		}
		if len(examples) == 0 {
			return
		}
		t.Run(pageName(command), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, program)
			for _, example := range examples {
				trial, found := trials[example]
				if !found {
					t.Errorf("nobody tries %s", example)
					continue
				}
				t.Log(example)
				s.tries(example, trial)
			}
		})
	})
	for example := range untried {
		t.Errorf("%s is tried, and stands nowhere", example)
	}
}
