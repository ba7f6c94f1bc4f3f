------------------------------- MODULE Session -------------------------------
(* When a session of ZooKeeper's is certainly alive: the leader's timer, what followers report to it, and the formula by which a     *)
(* sidecar counts, of internal/zookeeper. The ensemble's order of transactions is assumed, not modelled: what the leader puts into   *)
(* it is committed at that instant. Links are first in, first out; they stall for as long as they like, and a follower that dies     *)
(* takes its links along. Time is in units; nothing takes time but by standing still.                                                *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Sessions,    \* all of one sidecar
          Own,         \* those of them that prove themselves by heartbeats that are committed; the others send reads
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
          stage,               \* where its request is
          hand, beats,         \* of its present connection, the handshake and the heartbeats: sent and answered by its clock
          deadline,            \* until when the sidecar takes it for alive
          attachments, deaths

leader    == <<pinged, leaders>>
time      == <<now, clock, lost>>
links     == <<toF, toL>>
ensemble  == <<following, touched, expiry, expired>>
sidecar   == <<at, connection, cut, stage, hand, beats, deadline, attachments>>
variables == <<time, leader, links, ensemble, sidecar, deaths>>

Max(S) == CHOOSE x \in S : \A y \in S : y <= x

Init ==
  /\ now = 1 /\ clock = 1 /\ lost = 1 /\ pinged = 1 /\ leaders = 1 /\ deaths = 0 /\ attachments = 0
  /\ toF = [f \in Followers |-> <<>>] /\ toL = [f \in Followers |-> <<>>]
  /\ following = [f \in Followers |-> "serves"] /\ touched = [f \in Followers |-> {}]
  /\ expiry = [s \in Sessions |-> 1 + T] /\ expired = [s \in Sessions |-> FALSE]
  /\ \E f \in Followers : at = [s \in Sessions |-> f]
  /\ connection = [s \in Sessions |-> 1] /\ cut = [s \in Sessions |-> FALSE] /\ stage = [s \in Sessions |-> "idle"]
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

\* A leader that does not know of the other goes on vouching for sessions.
DeposedVouches(f, s) ==
  /\ following[f] = "orphaned" /\ at[s] = f /\ ~cut[s] /\ stage[s] = "forwarded" /\ hand[s].answered = 0
  /\ stage' = [stage EXCEPT ![s] = "answered"]
  /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, hand, beats, deadline, attachments, deaths>>

\* A follower that has died or has lost its leader closes its connections, remembers nothing, and follows the leader that there is.
Restart(f) ==
  /\ following[f] # "serves" /\ following' = [following EXCEPT ![f] = "serves"]
  /\ touched' = [touched EXCEPT ![f] = {}] /\ toF' = [toF EXCEPT ![f] = <<>>] /\ toL' = [toL EXCEPT ![f] = <<>>]
  /\ cut' = [s \in Sessions |-> cut[s] \/ at[s] = f]
  /\ UNCHANGED <<time, leader, expiry, expired, at, connection, stage, hand, beats, deadline, attachments, deaths>>

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
        ELSE /\ stage' = [s \in Sessions |-> IF Mine(s, m) /\ ~cut[s] /\ stage[s] = "forwarded" THEN "answered" ELSE stage[s]]
             /\ UNCHANGED <<toL, touched>>
  /\ UNCHANGED <<time, leader, following, expiry, expired, at, connection, cut, hand, beats, deadline, attachments, deaths>>

\* The follower gets the session's request: it notes that the session is active, and answers a read by itself.
Arrive(s) ==
  /\ ~cut[s] /\ Serves(at[s]) /\ stage[s] \in {"beat", "hand"}
  /\ IF stage[s] = "hand"
     THEN /\ Send(at[s], [kind |-> "check", of |-> s, on |-> connection[s]]) /\ stage' = [stage EXCEPT ![s] = "forwarded"]
          /\ UNCHANGED touched
     ELSE /\ touched' = [touched EXCEPT ![at[s]] = @ \union {s}]
          /\ IF s \in Own /\ Formula # "reads"
             THEN /\ Send(at[s], [kind |-> "request", of |-> s, on |-> connection[s]]) /\ stage' = [stage EXCEPT ![s] = "forwarded"]
             ELSE /\ stage' = [stage EXCEPT ![s] = "answered"] /\ UNCHANGED toL
  /\ UNCHANGED <<time, leader, toF, following, expiry, expired, at, connection, cut, hand, beats, deadline, attachments, deaths>>

(* ---- the sidecar ---- *)

Beat(s) ==
  /\ ~cut[s] /\ stage[s] = "idle" /\ Len(beats[s]) < MaxBeats
  /\ IF beats[s] = <<>> THEN TRUE ELSE clock > beats[s][Len(beats[s])].sent
  /\ beats' = [beats EXCEPT ![s] = Append(@, [sent |-> clock, answered |-> 0])] /\ stage' = [stage EXCEPT ![s] = "beat"]
  /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, hand, deadline, attachments, deaths>>

\* A connection is given up at any time, and the session comes back over another. One that only reads would prove itself from then on.
Attach(s) ==
  /\ s \in Own /\ attachments < MaxAttachments /\ attachments' = attachments + 1
  /\ \E f \in Followers : at' = [at EXCEPT ![s] = f]
  /\ connection' = [connection EXCEPT ![s] = @ + 1] /\ cut' = [cut EXCEPT ![s] = FALSE] /\ stage' = [stage EXCEPT ![s] = "hand"]
  /\ hand' = [hand EXCEPT ![s] = [sent |-> clock, answered |-> 0]]
  /\ beats' = [beats EXCEPT ![s] = <<>>]
  /\ UNCHANGED <<time, leader, links, ensemble, deadline, deaths>>

(* The formula. Nothing takes time here, so that before means <; in the code, where messages do, <= says the same.                      *)
(* What is answered counts if it was answered before Q - slack, where Q is when the newest heartbeat but one was sent:     *)
(* behind it a ping was answered whose report is before the newest heartbeat on the link to the leader, which committed that.           *)

Slack == IF Formula = "no lateness of pings" THEN Half ELSE Half + Delta
Lifetime == IF Formula = "clock is right" THEN T ELSE T - 2 * Drift

Before(b, q, least) ==
  LET S == {b[i].sent : i \in {j \in 1..Len(b) : b[j].answered > 0 /\ b[j].sent >= least /\ b[j].answered + Slack < q}}
  IN IF S = {} THEN 0 ELSE Max(S)

\* What is kept of heartbeats: not those before one that counts already, for they cannot extend anything any more.
Forget(b) ==
  LET n == Len(b)
      C == IF n < 2 THEN {} ELSE {i \in 1..n : b[i].answered > 0 /\ b[i].answered + Slack < b[n - 1].sent}
  IN IF C = {} THEN b ELSE SubSeq(b, Max(C), n)

\* Since when a session is proved whose heartbeats are committed, with b those that were answered.
Vouched(s, b) ==
  LET n == Len(b)
      q == IF Formula = "newest in place of newest but one" THEN b[n].sent ELSE IF n = 1 THEN 0 ELSE b[n - 1].sent
      counted == Before(b, q, 0)
  IN CASE Formula \in {"newest", "reads"} -> b[n].sent
       [] Formula = "newest, less half a tick" -> b[n].sent - Half
       [] OTHER -> IF counted = 0 THEN hand[s].sent ELSE counted

\* Since when a session is proved whose heartbeats are reads, with b the prober's that were answered. Both are connected to one server:
\* the session since it was made, for its id names the server.
Borrowed(s, b) ==
  LET n == Len(b)
      least == IF Formula = "prober of an earlier connection" THEN 0 ELSE hand[Prober].answered + 1
  IN IF n < 2 THEN 0 ELSE Before(beats[s], b[n - 1].sent, least)

Later(s, since) == IF since > 0 /\ since + Lifetime > deadline[s] THEN since + Lifetime ELSE deadline[s]

Answer(s) ==
  /\ stage[s] = "answered" /\ stage' = [stage EXCEPT ![s] = "idle"]
  /\ IF hand[s].answered = 0
     THEN /\ hand' = [hand EXCEPT ![s].answered = clock]
          /\ deadline' = IF Formula = "handshake counts at once" THEN [deadline EXCEPT ![s] = Later(s, hand[s].sent)] ELSE deadline
          /\ UNCHANGED beats
     ELSE LET b == [beats[s] EXCEPT ![Len(beats[s])].answered = clock] IN
          /\ beats' = [beats EXCEPT ![s] = IF s \in Own THEN Forget(b) ELSE b]
          /\ deadline' = IF s \in Own
                         THEN [d \in Sessions |-> CASE d = s -> Later(s, Vouched(s, b))
                                                    [] s = Prober /\ d \notin Own /\ at[d] = at[s] /\ connection[d] = 1 -> Later(d, Borrowed(d, b))
                                                    [] OTHER -> deadline[d]]
                         ELSE deadline
          /\ UNCHANGED hand
  /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, attachments, deaths>>

Next ==
  \/ Tick \/ Ping \/ ChangeLeader
  \/ \E s \in Sessions : Expire(s) \/ Arrive(s) \/ Beat(s) \/ Attach(s) \/ Answer(s)
  \/ \E f \in Followers : LeaderTakes(f) \/ FollowerTakes(f) \/ Restart(f) \/ Die(f) \/ \E s \in Sessions : DeposedVouches(f, s)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* No session that the sidecar takes for alive has been ended.
NoSessionIsOutlived == \A s \in Sessions : clock < deadline[s] => ~expired[s]

(* ---- what must be reached, or else nothing has been shown ---- *)

NothingIsExtended       == \A s \in Own : deadline[s] <= 1 + T - 2 * Drift
NoReattachmentCounts    == \A s \in Sessions : connection[s] > 1 => deadline[s] <= hand[s].sent
NothingExpires          == \A s \in Sessions : ~expired[s]

\* Links that hold more than this show nothing new.
\* A session that has been ended, and of which nothing is under way, stays so.
Over == \A s \in Sessions : expired[s] /\ clock >= deadline[s] /\ stage[s] # "answered"
                            /\ \A f \in Followers : \A i \in 1..Len(toF[f]) : IF toF[f][i].kind = "ping" THEN TRUE ELSE toF[f][i].of # s
Bounded == ~Over /\ \A f \in Followers : Len(toF[f]) <= 3 /\ Len(toL[f]) <= 3
==============================================================================
