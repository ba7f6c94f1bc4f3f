------------------------------- MODULE Session -------------------------------
(* When a session of ZooKeeper's is certainly alive: the leader's timer, what followers report to it, and the formula by which a     *)
(* sidecar counts, of internal/zookeeper. The ensemble's order of transactions is assumed, not modelled: what the leader puts into   *)
(* it is committed at that instant. Links are first in, first out; they stall for as long as they like, and a follower that dies     *)
(* takes its links along. Time is in units; nothing takes time but by standing still.                                                *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Sessions,    \* all of one sidecar
          Own,         \* those of them that prove themselves by requests that are committed; the others send reads
          Slots,       \* so many requests of a session may be under way at once
          Reads,       \* whether those of Own send reads, too, for as long as they like
          Prober,      \* the one of Own by whose heartbeats the others are proved
          Followers,   \* the servers that sessions are connected to
          T,           \* the timeout of every session
          Half,        \* half a tick: how long the leader waits between two pings
          Delta,       \* how much later a ping may be
          Drift,       \* 1: the sidecar's clock may lose a unit in each T; 0: it is right
          Formula,     \* "code", or the name of a mistake
          MaxTime, MaxBeats, MaxAttachments, MaxDeaths, MaxLeaders

VARIABLES now, clock, lost,    \* the true time, the sidecar's clock, and when that last lost a unit
          pinged, leaders,     \* when the leader last pinged, and how many there have been
          toF, toL,            \* per follower, the link from the leader and to it
          following, touched,  \* per follower, whether it serves, or has lost its leader, or is dead; and whom it will report
          expiry, expired,     \* per session, until when the leader waits, and whether it has ended it
          at, connection, cut, \* per session, the follower that it is connected to, its how manieth connection this is, and whether it is cut
          stage, asks,         \* per slot, where its request is, and what it is: when it was sent by its clock, whether it is a read, and
                               \* whether a transaction was counted since
          hand, beats,         \* of its present connection, the handshake and the requests: sent and answered by its clock
          pair,                \* when the newest transaction that counts and the one before were sent
          deadline,            \* until when the sidecar takes it for alive
          attachments, deaths

leader    == <<pinged, leaders>>
time      == <<now, clock, lost>>
links     == <<toF, toL>>
ensemble  == <<following, touched, expiry, expired>>
sidecar   == <<at, connection, cut, stage, asks, hand, beats, pair, deadline, attachments>>
variables == <<time, leader, links, ensemble, sidecar, deaths>>

NoAsk  == [sent |-> 0, read |-> FALSE, late |-> FALSE]
NoPair == [newest |-> 0, before |-> 0]

Max(S) == CHOOSE x \in S : \A y \in S : y <= x

Init ==
  /\ now = 1 /\ clock = 1 /\ lost = 1 /\ pinged = 1 /\ leaders = 1 /\ deaths = 0 /\ attachments = 0
  /\ toF = [f \in Followers |-> <<>>] /\ toL = [f \in Followers |-> <<>>]
  /\ following = [f \in Followers |-> "serves"] /\ touched = [f \in Followers |-> {}]
  /\ expiry = [s \in Sessions |-> 1 + T] /\ expired = [s \in Sessions |-> FALSE]
  /\ \E f \in Followers : at = [s \in Sessions |-> f]
  /\ connection = [s \in Sessions |-> 1] /\ cut = [s \in Sessions |-> FALSE] /\ stage = [s \in Sessions |-> [k \in Slots |-> "idle"]]
  /\ asks = [s \in Sessions |-> [k \in Slots |-> NoAsk]] /\ pair = [s \in Sessions |-> NoPair]
  /\ hand = [s \in Sessions |-> [sent |-> 1, answered |-> 1]] /\ beats = [s \in Sessions |-> <<>>]
  /\ deadline = [s \in Sessions |-> 1 + T - 2 * Drift]

(* ---- time ---- *)

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ \/ clock' = clock + 1 /\ UNCHANGED lost
     \/ Drift = 1 /\ now' - lost >= T /\ lost' = now' /\ UNCHANGED clock
  /\ UNCHANGED <<leader, links, ensemble, sidecar, deaths>>

(* ---- the ensemble ---- *)

\* A leader that is late with its pings may stand still for ever: it commits nothing then.
Ping ==
  /\ now >= pinged + Half /\ pinged' = now
  /\ toF' = [f \in Followers |-> IF following[f] = "serves" THEN Append(toF[f], [kind |-> "ping"]) ELSE toF[f]]
  /\ UNCHANGED <<time, leaders, toL, ensemble, sidecar, deaths>>

Commits == now <= pinged + Half + Delta

Expire(s) ==
  /\ ~expired[s] /\ now >= expiry[s] /\ expired' = [expired EXCEPT ![s] = TRUE]
  /\ UNCHANGED <<time, leader, links, following, touched, expiry, sidecar, deaths>>

LeaderTakes(f) ==
  /\ following[f] = "serves" /\ toL[f] # <<>>
  /\ LET m == Head(toL[f]) IN
     /\ toL' = [toL EXCEPT ![f] = Tail(@)]
     /\ CASE m.kind = "report" ->
               /\ expiry' = [s \in Sessions |-> IF s \in m.who /\ ~expired[s] THEN now + T ELSE expiry[s]]
               /\ UNCHANGED toF
          [] m.kind = "request" ->
               /\ Commits
               /\ toF' = IF expired[m.of] THEN toF ELSE [toF EXCEPT ![f] = Append(@, [m EXCEPT !.kind = "committed"])]
               /\ UNCHANGED expiry
          [] m.kind = "check" ->
               /\ toF' = IF expired[m.of] THEN toF ELSE [toF EXCEPT ![f] = Append(@, [m EXCEPT !.kind = "valid"])]
               /\ expiry' = IF expired[m.of] THEN expiry ELSE [expiry EXCEPT ![m.of] = now + T]
  /\ UNCHANGED <<time, leader, following, touched, expired, sidecar, deaths>>

\* Another leader begins every session's timeout anew, after all that the one before has committed. Followers may hear of that late: until
\* then they go through what they have been sent.
ChangeLeader ==
  /\ leaders < MaxLeaders /\ leaders' = leaders + 1 /\ pinged' = now
  /\ expiry' = [s \in Sessions |-> now + T]
  /\ following' = [f \in Followers |-> IF following[f] = "serves" THEN "orphaned" ELSE following[f]]
  /\ toL' = [f \in Followers |-> <<>>]
  /\ UNCHANGED <<time, toF, touched, expired, sidecar, deaths>>

\* A leader that does not know of the other goes on with its sessions.
DeposedTouches(f, s) ==
  /\ following[f] = "orphaned" /\ at[s] = f /\ ~cut[s] /\ stage[s][1] = "forwarded" /\ hand[s].answered = 0
  /\ stage' = [stage EXCEPT ![s][1] = "answered"]
  /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, asks, hand, beats, pair, deadline, attachments, deaths>>

\* A follower that has died or has lost its leader closes its connections, remembers nothing, and follows the leader that there is.
Restart(f) ==
  /\ following[f] # "serves" /\ following' = [following EXCEPT ![f] = "serves"]
  /\ touched' = [touched EXCEPT ![f] = {}] /\ toF' = [toF EXCEPT ![f] = <<>>] /\ toL' = [toL EXCEPT ![f] = <<>>]
  /\ cut' = [s \in Sessions |-> cut[s] \/ at[s] = f]
  /\ UNCHANGED <<time, leader, expiry, expired, at, connection, stage, asks, hand, beats, pair, deadline, attachments, deaths>>

Die(f) ==
  /\ deaths < MaxDeaths /\ deaths' = deaths + 1 /\ following[f] # "dead"
  /\ following' = [following EXCEPT ![f] = "dead"]
  /\ toF' = [toF EXCEPT ![f] = <<>>] /\ \E n \in 0..Len(toL[f]) : toL' = [toL EXCEPT ![f] = SubSeq(@, 1, n)]
  /\ UNCHANGED <<time, leader, touched, expiry, expired, sidecar>>

(* ---- a follower, and its clients ---- *)

Serves(f) == following[f] # "dead"
Send(f, m) == toL' = IF following[f] = "serves" THEN [toL EXCEPT ![f] = Append(@, m)] ELSE toL
Mine(s, m) == m.of = s /\ m.on = connection[s]

FollowerTakes(f) ==
  /\ Serves(f) /\ toF[f] # <<>>
  /\ LET m == Head(toF[f]) IN
     /\ toF' = [toF EXCEPT ![f] = Tail(@)]
     /\ IF m.kind = "ping"
        THEN /\ Send(f, [kind |-> "report", who |-> touched[f]]) /\ touched' = [touched EXCEPT ![f] = {}] /\ UNCHANGED stage
        ELSE /\ stage' = [s \in Sessions |-> IF Mine(s, m) /\ ~cut[s] /\ stage[s][m.slot] = "forwarded"
                                              THEN [stage[s] EXCEPT ![m.slot] = "answered"] ELSE stage[s]]
             /\ UNCHANGED <<toL, touched>>
  /\ UNCHANGED <<time, leader, following, expiry, expired, at, connection, cut, asks, hand, beats, pair, deadline, attachments, deaths>>

\* The follower gets a request of the session's: it notes that the session is active, and answers a read by itself.
Arrive(s, k) ==
  /\ ~cut[s] /\ Serves(at[s]) /\ stage[s][k] \in {"beat", "hand"}
  /\ LET Forward(kind) == /\ Send(at[s], [kind |-> kind, of |-> s, on |-> connection[s], slot |-> k])
                           /\ stage' = [stage EXCEPT ![s][k] = "forwarded"]
     IN IF stage[s][k] = "hand"
        THEN Forward("check") /\ UNCHANGED touched
        ELSE /\ touched' = [touched EXCEPT ![at[s]] = @ \union {s}]
             /\ IF s \in Own /\ Formula # "reads" /\ ~asks[s][k].read
                THEN Forward("request")
                ELSE /\ stage' = [stage EXCEPT ![s][k] = "answered"] /\ UNCHANGED toL
  /\ UNCHANGED <<time, leader, toF, following, expiry, expired, at, connection, cut, asks, hand, beats, pair, deadline, attachments, deaths>>

(* ---- the sidecar ---- *)

Beat(s, k) ==
  /\ ~cut[s] /\ hand[s].answered > 0 /\ stage[s][k] = "idle" /\ Len(beats[s]) < MaxBeats
  /\ IF beats[s] = <<>> THEN TRUE ELSE clock > beats[s][Len(beats[s])].sent
  /\ \E read \in IF s \in Own /\ Reads THEN BOOLEAN ELSE {FALSE} : asks' = [asks EXCEPT ![s][k] = [sent |-> clock, read |-> read, late |-> FALSE]]
  /\ stage' = [stage EXCEPT ![s][k] = "beat"]
  /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, hand, beats, pair, deadline, attachments, deaths>>

\* A connection is given up at any time, and the session comes back over another. One that only reads would prove itself from then on.
Attach(s) ==
  /\ s \in Own /\ attachments < MaxAttachments /\ attachments' = attachments + 1
  /\ \E f \in Followers : at' = [at EXCEPT ![s] = f]
  /\ connection' = [connection EXCEPT ![s] = @ + 1] /\ cut' = [cut EXCEPT ![s] = FALSE]
  /\ stage' = [stage EXCEPT ![s] = [k \in Slots |-> IF k = 1 THEN "hand" ELSE "idle"]] /\ asks' = [asks EXCEPT ![s] = [k \in Slots |-> NoAsk]]
  /\ hand' = [hand EXCEPT ![s] = [sent |-> clock, answered |-> 0]]
  /\ beats' = [beats EXCEPT ![s] = <<>>] /\ pair' = [pair EXCEPT ![s] = NoPair]
  /\ UNCHANGED <<time, leader, links, ensemble, deadline, deaths>>

(* The formula. Nothing takes time here, so that before means <; in the code, where messages do, <= says the same.                      *)
(* What is answered counts if it was answered before Q - slack, where Q is when the newest transaction but one was sent:               *)
(* behind it a ping was answered whose report is before the newest transaction on the link to the leader, which committed that. Of two  *)
(* that were under way together only the one that is answered first counts as a transaction, and the other as a read does.              *)

Slack == IF Formula = "no lateness of pings" THEN Half ELSE Half + Delta
Lifetime == IF Formula = "clock is right" THEN T ELSE T - 2 * Drift

Before(b, q, least) ==
  LET S == {b[i].sent : i \in {j \in 1..Len(b) : b[j].sent >= least /\ b[j].answered + Slack < q}}
  IN IF S = {} THEN 0 ELSE Max(S)

\* What is kept of requests, which are in the order of their answers: not those that are no newer than one that counts already, for they
\* cannot extend anything any more.
Forget(b, q) ==
  LET C == {i \in 1..Len(b) : b[i].answered + Slack < q}
      newest == CHOOSE i \in C : \A j \in C : b[j].sent <= b[i].sent
  IN IF C = {} THEN b ELSE <<b[newest]>> \o SubSeq(b, Max(C) + 1, Len(b))

\* Since when a session is proved that has transactions, with b the requests that were answered and p the transactions that count.
Shared(s, b, p) ==
  LET counted == Before(b, IF Formula = "newest in place of newest but one" THEN p.newest ELSE p.before, 0)
  IN CASE Formula \in {"newest", "reads"} -> p.newest
       [] Formula = "newest, less half a tick" -> p.newest - Half
       [] OTHER -> IF counted = 0 THEN hand[s].sent ELSE counted

\* Since when a session is proved whose heartbeats are reads, with p the prober's transactions. Both are connected to one server:
\* the session since it was made, for its id names the server.
Borrowed(s, p) ==
  LET least == IF Formula = "prober of an earlier connection" THEN 0 ELSE hand[Prober].answered + 1
  IN IF p.before = 0 THEN 0 ELSE Before(beats[s], p.before, least)

Later(s, since) == IF since > 0 /\ since + Lifetime > deadline[s] THEN since + Lifetime ELSE deadline[s]

\* Whether the answer counts as a transaction's.
Counts(s, ask) ==
  /\ s \in Own /\ (~ask.read \/ Formula = "reads count as transactions")
  /\ (~ask.late \/ Formula = "transactions under way together")

Answer(s, k) ==
  /\ stage[s][k] = "answered" /\ stage' = [stage EXCEPT ![s][k] = "idle"]
  /\ IF hand[s].answered = 0
     THEN /\ hand' = [hand EXCEPT ![s].answered = clock]
          /\ deadline' = IF Formula = "handshake counts at once" THEN [deadline EXCEPT ![s] = Later(s, hand[s].sent)] ELSE deadline
          /\ UNCHANGED <<beats, pair, asks>>
     ELSE LET ask == asks[s][k]
              b == Append(beats[s], [sent |-> ask.sent, answered |-> clock])
              p == [newest |-> ask.sent, before |-> pair[s].newest]
          IN /\ IF Counts(s, ask)
                THEN /\ beats' = [beats EXCEPT ![s] = Forget(b, p.before)] /\ pair' = [pair EXCEPT ![s] = p]
                     /\ asks' = [asks EXCEPT ![s] = [l \in Slots |-> IF l = k \/ stage[s][l] = "idle" THEN NoAsk ELSE [@[l] EXCEPT !.late = TRUE]]]
                     /\ deadline' = [d \in Sessions |-> CASE d = s -> Later(s, Shared(s, b, p))
                                       [] s = Prober /\ d \notin Own /\ at[d] = at[s] /\ connection[d] = 1 -> Later(d, Borrowed(d, p))
                                       [] OTHER -> deadline[d]]
                ELSE /\ beats' = [beats EXCEPT ![s] = b] /\ asks' = [asks EXCEPT ![s][k] = NoAsk] /\ UNCHANGED <<pair, deadline>>
             /\ UNCHANGED hand
  /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, attachments, deaths>>

Next ==
  \/ Tick \/ Ping \/ ChangeLeader
  \/ \E s \in Sessions : Expire(s) \/ Attach(s) \/ \E k \in Slots : Arrive(s, k) \/ Beat(s, k) \/ Answer(s, k)
  \/ \E f \in Followers : LeaderTakes(f) \/ FollowerTakes(f) \/ Restart(f) \/ Die(f) \/ \E s \in Sessions : DeposedTouches(f, s)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* No session that the sidecar takes for alive has been ended.
NoSessionIsOutlived == \A s \in Sessions : clock < deadline[s] => ~expired[s]

(* ---- what must be reached, or else nothing has been shown ---- *)

NothingIsExtended       == \A s \in Own : deadline[s] <= 1 + T - 2 * Drift
NoReattachmentCounts    == \A s \in Sessions : connection[s] > 1 => deadline[s] <= hand[s].sent
NothingIsUnderWayTogether == \A s \in Own : \A k \in Slots : stage[s][k] = "answered" => ~asks[s][k].late
NothingExpires          == \A s \in Sessions : ~expired[s]

\* Links that hold more than this show nothing new.
\* A session that has been ended, and of which nothing is under way, stays so.
Over == \A s \in Sessions : expired[s] /\ clock >= deadline[s] /\ \A k \in Slots : stage[s][k] # "answered"
                            /\ \A f \in Followers : \A i \in 1..Len(toF[f]) : IF toF[f][i].kind = "ping" THEN TRUE ELSE toF[f][i].of # s
Bounded == ~Over /\ \A f \in Followers : Len(toF[f]) <= 3 /\ Len(toL[f]) <= 3
==============================================================================
