------------------------------- MODULE Resume -------------------------------
(* How leases outlive their sidecar: the rules of internal/journal and of service/lease_resume.go. A process dies, or only stands still,  *)
(* and the next one comes back, by the journal, to the sessions of those who come back to it. What a committed request proves of its     *)
(* session is what Session.tla shows, and is taken for granted here: it is not ended before T has passed since that request was sent.    *)
(* Each caller has one lease and on it one hold, whose place is its session's; somebody else is granted the lock as soon as that has     *)
(* gone. Callers may be frozen: what they were told counts until its time is over.                                                       *)
EXTENDS Naturals, FiniteSets

CONSTANTS Callers,
          Processes,          \* of one sidecar, one after the other: 1, 2 …
          Sessions,
          T,                  \* the timeout of every session
          MaxTime,
          Mistake             \* "none", or the name of one

VARIABLES now,
          session,            \* per session: [is |-> "new", "open" or "over", until: not ended before, place: whose hold stands]
          closing,            \* the sessions of which a request to close them is under way, for as long as it likes
          journal,            \* per caller, the session that its lease is noted with; 0 for none
          process,            \* per process: [is |-> "not yet", "runs", "stands still" or "dead", began, earlier: whom it can come back to, pool]
          lease,              \* per process and caller, what it has of the lease
          connected,          \* per caller, the process that it is connected to; 0 for none
          left,               \* what a process has of a caller whose connection for it has gone: <<process, caller>>
          opened,             \* the callers that have had a lease
          counts              \* per caller, until when it counts on its hold

variables == <<now, session, closing, journal, process, lease, connected, left, opened, counts>>

\* proof: when the newest request was sent that was committed; beat: when the one was that is under way; told: until when anybody may count
\* on what was told; by: who has come back to it.
NoLease == [stage |-> "none", on |-> 0, proof |-> 0, beat |-> 0, told |-> 0, by |-> ""]
Nobody  == ""
Max(a, b) == IF a > b THEN a ELSE b

Init ==
  /\ now = 1 /\ session = [s \in Sessions |-> [is |-> "new", until |-> 0, place |-> Nobody]] /\ closing = {}
  /\ journal = [c \in Callers |-> 0] /\ left = {} /\ opened = {}
  /\ process = [p \in Processes |-> [is |-> IF p = 1 THEN "runs" ELSE "not yet", began |-> 1, earlier |-> {}, pool |-> {}]]
  /\ lease = [p \in Processes |-> [c \in Callers |-> NoLease]]
  /\ connected = [c \in Callers |-> 0] /\ counts = [c \in Callers |-> 0]

Runs(p) == process[p].is = "runs"
Valid(l) == l.proof # 0 /\ now < l.proof + T
Becomes(p, c, l) == lease' = [lease EXCEPT ![p][c] = l]
Forgotten(p, c) == IF journal[c] = lease[p][c].on THEN [journal EXCEPT ![c] = 0] ELSE journal

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<session, closing, journal, process, lease, connected, left, opened, counts>>

(* ---- the ensemble ---- *)

Over(s) == session' = [session EXCEPT ![s].is = "over", ![s].place = Nobody]

Expire(s) ==
  /\ session[s].is = "open" /\ now >= session[s].until /\ Over(s)
  /\ UNCHANGED <<now, closing, journal, process, lease, connected, left, opened, counts>>

\* A request to close a session is carried out whoever sends it, and however late.
Close(s) ==
  /\ s \in closing /\ closing' = closing \ {s} /\ Over(s)
  /\ UNCHANGED <<now, journal, process, lease, connected, left, opened, counts>>

(* ---- a lease, and the hold on it ---- *)

\* It gets a new session, or one that an earlier lease has given back.
Open(p, c) ==
  /\ Runs(p) /\ c \notin opened /\ opened' = opened \union {c} /\ connected' = [connected EXCEPT ![c] = p]
  /\ \E s \in Sessions :
     \/ /\ session[s].is = "new" /\ \A earlier \in Sessions : earlier < s => session[earlier].is # "new"
        /\ session' = [session EXCEPT ![s].is = "open", ![s].until = now + T]
        /\ Becomes(p, c, [NoLease EXCEPT !.stage = "opened", !.on = s, !.proof = now, !.by = c])
        /\ UNCHANGED process
     \/ /\ s \in process[p].pool /\ process' = [process EXCEPT ![p].pool = @ \ {s}]
        /\ Becomes(p, c, [NoLease EXCEPT !.stage = "opened", !.on = s, !.by = c])
        /\ UNCHANGED session
  /\ UNCHANGED <<now, closing, journal, left, counts>>

\* A lease that is not noted cannot be come back to.
Note(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage = "opened" /\ journal[c] = 0 /\ journal' = [journal EXCEPT ![c] = lease[p][c].on]
  /\ UNCHANGED <<now, session, closing, process, lease, connected, left, opened, counts>>

Grant(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage = "opened" /\ Valid(lease[p][c]) /\ session[lease[p][c].on].is = "open"
  /\ session' = [session EXCEPT ![lease[p][c].on].place = c] /\ lease' = [lease EXCEPT ![p][c].stage = "holds"]
  /\ UNCHANGED <<now, closing, journal, process, connected, left, opened, counts>>

Tell(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage = "holds" /\ Valid(lease[p][c]) /\ connected[lease[p][c].by] = p
  /\ LET until == lease[p][c].proof + T IN
     /\ counts' = [counts EXCEPT ![lease[p][c].by] = Max(@, until)]
     /\ lease' = [lease EXCEPT ![p][c].told = Max(@, until)]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened>>

Send(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage \in {"opened", "holds", "returns"} /\ lease[p][c].beat = 0
  /\ lease' = [lease EXCEPT ![p][c].beat = now]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened, counts>>

\* What a process that comes back reads behind its first request is as it was then or is now. What its caller claims of that it has again;
\* what it does not claim goes.
Answer(p, c) ==
  LET l == lease[p][c]
      s == l.on
      proved == [l EXCEPT !.proof = l.beat, !.beat = 0]
      touched == [session EXCEPT ![s].until = Max(@, l.beat + T)]
      claimed == session[s].place = c /\ l.by = c
  IN
  /\ Runs(p) /\ l.beat # 0 /\ session[s].is = "open"
  /\ CASE l.stage # "returns" -> Becomes(p, c, proved) /\ session' = touched
       [] claimed -> Becomes(p, c, [proved EXCEPT !.stage = "holds"]) /\ session' = touched
       [] OTHER -> Becomes(p, c, [proved EXCEPT !.stage = "ends", !.told = 0]) /\ session' = [touched EXCEPT ![s].place = Nobody]
  /\ UNCHANGED <<now, closing, journal, process, connected, left, opened, counts>>

GetNoAnswer(p, c) ==
  /\ Runs(p) /\ lease[p][c].beat # 0 /\ lease' = [lease EXCEPT ![p][c].beat = 0]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened, counts>>

(* ---- how a lease ends ---- *)

\* By its caller's own hand: it counts on nothing from when it says so.
Release(p, c) ==
  /\ Runs(p) /\ connected[c] = p /\ lease[p][c].stage \in {"opened", "holds"} /\ lease[p][c].by = c
  /\ counts' = [counts EXCEPT ![c] = 0] /\ lease' = [lease EXCEPT ![p][c].stage = "ends", ![p][c].told = 0]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened>>

Force(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage = "holds" /\ lease' = [lease EXCEPT ![p][c].stage = "ends"]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened, counts>>

\* What a process notes of an end comes when its disk has it: the end is told meanwhile.
Forget(p, c) ==
  /\ Runs(p)
  /\ \/ lease[p][c].stage = "ends" /\ lease' = [lease EXCEPT ![p][c].stage = "forgotten"]
     \/ lease[p][c].stage \in {"closed", "lost"} /\ Becomes(p, c, NoLease)
  /\ journal' = Forgotten(p, c)
  /\ UNCHANGED <<now, session, closing, process, connected, left, opened, counts>>

\* The place of its hold goes when nobody counts on it any more, whether it has been forgotten or not.
Drop(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage = "ends" /\ lease[p][c].told <= now
  /\ session[lease[p][c].on].is = "open" /\ session[lease[p][c].on].place = c
  /\ session' = [session EXCEPT ![lease[p][c].on].place = Nobody]
  /\ UNCHANGED <<now, closing, journal, process, lease, connected, left, opened, counts>>

\* Its session is closed, or another lease's, once it has been forgotten.
Ends(p, c, mistaken) ==
  /\ lease[p][c].told <= now
  /\ lease[p][c].stage = "forgotten" \/ (mistaken /\ lease[p][c].stage = "ends")

SendClose(p, c) ==
  /\ Runs(p) /\ Ends(p, c, Mistake = "closes before it forgets") /\ closing' = closing \union {lease[p][c].on}
  /\ Becomes(p, c, IF lease[p][c].stage = "ends" THEN [lease[p][c] EXCEPT !.stage = "closed"] ELSE NoLease)
  /\ UNCHANGED <<now, session, journal, process, connected, left, opened, counts>>

\* Its place is deleted, and its session is another's.
GiveBack(p, c) ==
  /\ Runs(p) /\ Ends(p, c, Mistake = "believes two notes of a session") /\ session[lease[p][c].on].is = "open"
  /\ session' = [session EXCEPT ![lease[p][c].on].place = Nobody]
  /\ process' = [process EXCEPT ![p].pool = @ \union {lease[p][c].on}] /\ Becomes(p, c, NoLease)
  /\ UNCHANGED <<now, closing, journal, connected, left, opened, counts>>

\* Its time is over, or it is seen to be: it is fenced, and nothing more is sent.
Lose(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage \in {"opened", "holds", "returns"}
  /\ \/ session[lease[p][c].on].is = "over"
     \/ lease[p][c].stage # "returns" /\ lease[p][c].proof # 0 /\ now >= lease[p][c].proof + T
  /\ lease' = [lease EXCEPT ![p][c].stage = "lost", ![p][c].beat = 0]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened, counts>>

\* A connection that has gone is a caller that is dead, who counts on nothing.
FindLeft(p, c) ==
  /\ Runs(p) /\ <<p, c>> \in left /\ left' = left \ {<<p, c>>}
  /\ lease[p][c].on # 0 /\ journal' = Forgotten(p, c) /\ closing' = closing \union {lease[p][c].on}
  /\ IF connected[c] = p THEN UNCHANGED lease ELSE Becomes(p, c, NoLease)
  /\ UNCHANGED <<now, session, process, connected, opened, counts>>

(* ---- a process goes, and another comes ---- *)

Freeze(p) ==
  /\ Runs(p) /\ process' = [process EXCEPT ![p].is = "stands still"]
  /\ UNCHANGED <<now, session, closing, journal, lease, connected, left, opened, counts>>

Thaw(p) ==
  /\ process[p].is = "stands still" /\ process' = [process EXCEPT ![p].is = "runs"]
  /\ UNCHANGED <<now, session, closing, journal, lease, connected, left, opened, counts>>

Die(p) ==
  /\ process[p].is \in {"runs", "stands still"}
  /\ process' = [process EXCEPT ![p].is = "dead", ![p].earlier = {}, ![p].pool = {}]
  /\ lease' = [lease EXCEPT ![p] = [c \in Callers |-> NoLease]]
  /\ connected' = [c \in Callers |-> IF connected[c] = p THEN 0 ELSE connected[c]]
  /\ left' = {of \in left : of[1] # p}
  /\ UNCHANGED <<now, session, closing, journal, opened, counts>>

\* A process that lives has the lock on the directory, also while it stands still.
Start(p) ==
  /\ process[p].is = "not yet"
  /\ \A q \in Processes : q < p => process[q].is = "dead" \/ (Mistake = "takes over from one that stands still" /\ ~Runs(q))
  /\ LET alone(c) == \A d \in Callers : d = c \/ journal[d] # journal[c]
         kept == {c \in Callers : journal[c] # 0 /\ (alone(c) \/ Mistake = "believes two notes of a session")}
     IN /\ process' = [process EXCEPT ![p] = [is |-> "runs", began |-> now, earlier |-> kept, pool |-> {}]]
        /\ journal' = [c \in Callers |-> IF c \in kept THEN journal[c] ELSE 0]
  /\ UNCHANGED <<now, session, closing, lease, connected, left, opened, counts>>

\* Somebody comes back to a lease. What the process before had told is over when T has passed since this one began.
Resume(p, c, by) ==
  /\ Runs(p) /\ c \in process[p].earlier /\ journal[c] # 0 /\ now <= process[p].began + T
  /\ by = c \/ Mistake = "comes back to another's lease"
  /\ by \in opened
  /\ connected' = [connected EXCEPT ![by] = p]
  /\ left' = IF connected[by] = 0 THEN left ELSE left \union {<<connected[by], by>>}
  /\ process' = IF Mistake = "hands a note out twice" THEN process ELSE [process EXCEPT ![p].earlier = @ \ {c}]
  /\ LET returns == [NoLease EXCEPT !.stage = "returns", !.on = journal[c], !.by = by,
                                    !.told = IF Mistake = "does not know what was told" THEN 0 ELSE process[p].began + T]
     IN Becomes(p, c, IF Mistake = "counts anew" THEN [returns EXCEPT !.stage = "holds", !.proof = now] ELSE returns)
  /\ counts' = IF Mistake = "counts on while its sidecar is away" /\ now < counts[by] THEN [counts EXCEPT ![by] = now + T] ELSE counts
  /\ UNCHANGED <<now, session, closing, journal, opened>>

\* A leader that has been deposed and does not know it vouches for a session that has been ended, and its servers show what stood on it.
Believe(p, c) ==
  /\ Mistake = "believes the handshake" /\ Runs(p) /\ lease[p][c].stage = "returns"
  /\ lease' = [lease EXCEPT ![p][c].stage = "holds", ![p][c].proof = now]
  /\ UNCHANGED <<now, session, closing, journal, process, connected, left, opened, counts>>

\* The ensemble does not answer: the lease may be come back to again.
Return(p, c) ==
  /\ Runs(p) /\ lease[p][c].stage = "returns" /\ Becomes(p, c, NoLease)
  /\ process' = [process EXCEPT ![p].earlier = @ \union {c}] /\ connected' = [connected EXCEPT ![lease[p][c].by] = 0]
  /\ UNCHANGED <<now, session, closing, journal, left, opened, counts>>

Next ==
  \/ Tick
  \/ \E s \in Sessions : Expire(s) \/ Close(s)
  \/ \E p \in Processes : Freeze(p) \/ Thaw(p) \/ Die(p) \/ Start(p)
  \/ \E p \in Processes, c \in Callers :
       \/ Open(p, c) \/ Note(p, c) \/ Grant(p, c) \/ Tell(p, c) \/ Send(p, c) \/ Answer(p, c) \/ GetNoAnswer(p, c)
       \/ Release(p, c) \/ Force(p, c) \/ Forget(p, c) \/ Drop(p, c) \/ SendClose(p, c) \/ GiveBack(p, c) \/ Lose(p, c) \/ FindLeft(p, c)
       \/ Believe(p, c) \/ Return(p, c) \/ \E by \in Callers : Resume(p, c, by)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

Stands(c) == \E s \in Sessions : session[s].is = "open" /\ session[s].place = c

\* While a caller counts on its hold nobody else can be granted the lock, whichever process has told it.
NobodyCountsOnWhatIsGone == \A c \in Callers : now < counts[c] => Stands(c)
\* Nor while a stream says that it is held.
NoStreamHoldsWhatIsGone == \A p \in Processes, c \in Callers : Runs(p) /\ lease[p][c].stage = "holds" /\ Valid(lease[p][c]) => Stands(c)

(* ---- what must be reached ---- *)

Later == {p \in Processes : p > 1}

NobodyComesBack       == \A p \in Later, c \in Callers : lease[p][c].stage # "holds"
NothingIsToldAnew     == \A p \in Later, c \in Callers : lease[p][c].stage = "holds" => counts[c] # lease[p][c].proof + T
NobodyCountsMeanwhile == \A c \in Callers : now < counts[c] => connected[c] # 0
NoClosingComesLate    == closing = {} \/ \A p \in Later : ~Runs(p)
NoSessionIsTakenAgain == \A p \in Processes, c \in Callers : lease[p][c].stage = "opened" => lease[p][c].proof # 0
NothingEndsMeanwhile  == \A p \in Later, c \in Callers : lease[p][c].stage = "returns" => session[lease[p][c].on].is # "over"
==============================================================================
