------------------------------ MODULE LockTrace ------------------------------
(* Whether what the running code and the ensemble have done about a lock can be done in Lock.tla. A trace is what was told, step by step;  *)
(* each step takes the one of Lock.tla that it names, with what was told of it. What is not told, TLC fills in: how much of the log a       *)
(* sidecar had seen as it was granted the lock, and that a creation was not carried out. What Lock.tla takes for granted is asked for here: *)
(* a sidecar has ended the session by the time the ensemble does. Each trace that can be taken to its end is told; the others are refused. *)
EXTENDS Lock, Traces, TLC

CONSTANT Loud     \* whether each step that is reached is told

VARIABLES trace,  \* which
          position, \* the step that comes next
          absent, \* callers whose creation was found not to have been carried out, and who have not asked again
          served, \* callers whose hold has a stream, which alone ends it
          closed  \* those of them whose stream has its status

Told    == <<trace, position, absent, served, closed>>
Step    == Traces[trace][position]
Caller  == Step.caller
Carried == /\ asked[Caller] = "sent" /\ Create(Caller) /\ log' # log
Failed  == /\ asked[Caller] = "sent" /\ Create(Caller) /\ log' = log

TraceInit == Init /\ trace \in 1..Len(Traces) /\ position = 1 /\ absent = {} /\ served = {} /\ closed = {}

\* What a caller is told for how long counts.
Promise == [hold_told |-> "hold", lease_told |-> "lease"]
Promised == Promise[Step.kind]
\* What a caller says that it was told.
Heard == [heard |-> "hold", lease_heard |-> "lease"]

(* ---- what is not told ---- *)

\* No more is seen than it takes: whoever has seen less can do all that whoever has seen more can.
Fill ==
  /\ Caller # 0
  /\ \/ Step.kind = "granted" /\ ~ENABLED Grant(Caller) /\ See(Caller)
     \/ Step.kind \in {"absent", "lost"} /\ Failed
     \/ Step.kind \in DOMAIN Promise /\ Promised \notin answers[Caller]
        /\ IF Promised \in checks[Caller] THEN Answer(Caller, Promised) ELSE Check(Caller, Promised)
  /\ UNCHANGED Told

(* ---- what is told ---- *)

\* By its holder's own hand if it is held, unless it has a stream: then that has ended it. Whoever waits counts on nothing.
GivesUp(c) ==
  CASE stream[c] = "holds" -> c \notin served /\ Release(c)
    [] stream[c] = "waits" -> Force(c)
    [] OTHER -> UNCHANGED variables

Leaves(c) == (c \in served => c \in closed) /\ GivesUp(c)

Ends(c) == IF stream[c] \in {"waits", "holds"} /\ c \notin served THEN Force(c) ELSE UNCHANGED variables

\* What was told of the lease before the hold ended is told of the hold.
IsTold(c) == IF Promised = "lease" /\ stream[c] # "holds" THEN UNCHANGED variables ELSE Read(c, Promised)

\* The ensemble has ended its session, with its place if that stood still.
IsLost(c) ==
  CASE stream[c] = "none" -> UNCHANGED variables
    [] stream[c] = "ended" -> Lose(c) \/ (acknowledged[c] /\ GiveUp(c))
    [] OTHER -> FALSE

\* With all that is promised of it, as it is granted.
IsGranted(c) ==
  /\ Step.place = place[c] /\ Grant(c)
  /\ Step.token = place[c] /\ \A b \in Callers : Excludes(b, c) => tokens[b] < Step.token
  /\ OneStreamHolds' /\ OneCallerIsSure'

Take(c) ==
  CASE Step.kind = "asked" -> IF c \in absent THEN asked[c] = "sent" /\ UNCHANGED variables ELSE Ask(c)
    [] Step.kind = "created" -> Step.place = Len(log) + 1 /\ Carried
    [] Step.kind = "made" -> asked[c] = "no" /\ place[c] = Step.place /\ UNCHANGED variables
    [] Step.kind = "found" -> Search(c) /\ place'[c] = Step.place
    [] Step.kind = "absent" -> Search(c) /\ place'[c] = 0
    [] Step.kind = "granted" -> IsGranted(c)
    [] Step.kind = "still" -> ~(stream[c] = "waits" /\ place[c] = Step.place) /\ UNCHANGED variables
    [] Step.kind = "held" -> stream[c] = "holds" /\ UNCHANGED variables
    [] Step.kind = "promised" -> stream[c] = "holds" /\ UNCHANGED variables
    [] Step.kind \in DOMAIN Promise -> IsTold(c)
    [] Step.kind \in DOMAIN Heard -> Heard[Step.kind] \in counts[c] /\ UNCHANGED variables
    [] Step.kind = "expires" -> IF ENABLED Expires(c) THEN Expires(c) ELSE UNCHANGED variables
    [] Step.kind = "released" -> Release(c)
    [] Step.kind = "ended" -> stream[c] = "holds" /\ Force(c)
    [] Step.kind = "status" -> stream[c] = "ended" /\ UNCHANGED variables
    [] Step.kind \in {"acknowledged", "deserted"} -> IF acknowledged[c] THEN UNCHANGED variables ELSE Hear(c)
    [] Step.kind = "buried" -> stream[c] \in {"ended", "none"} /\ UNCHANGED variables
    [] Step.kind = "leaving" -> Leaves(c)
    [] Step.kind = "closing" -> GivesUp(c)
    [] Step.kind = "over" -> Ends(c)
    [] Step.kind = "died" -> IF stream[c] \in {"waits", "holds"} THEN Force(c) ELSE UNCHANGED variables
    [] Step.kind = "deleted" -> place[c] = Step.place /\ GiveUp(c) /\ log' # log
    [] Step.kind = "left" -> stream[c] = "none" /\ place[c] = 0 /\ UNCHANGED variables
    [] Step.kind = "lost" -> IsLost(c)
    [] OTHER -> FALSE

Over == Step.kind = "end" /\ Standing(Len(log)) = {} /\ (\A c \in Callers : stream[c] = "none") /\ UNCHANGED variables

Follow ==
  /\ IF Caller = 0 THEN Over ELSE Take(Caller)
  /\ position' = position + 1 /\ UNCHANGED trace
  /\ absent' = CASE Step.kind = "absent" -> absent \union {Caller}
                 [] Step.kind \in {"asked", "lost"} -> absent \ {Caller}
                 [] OTHER -> absent
  /\ served' = CASE Step.kind = "held" -> served \union {Caller}
                 [] Caller # 0 /\ stream'[Caller] = "none" -> served \ {Caller}
                 [] OTHER -> served
  /\ closed' = IF Step.kind = "status" THEN closed \union {Caller} ELSE closed \intersect served'

TraceNext == position <= Len(Traces[trace]) /\ (Fill \/ Follow)

TraceSpec == TraceInit /\ [][TraceNext]_<<variables, Told>>

Tells == /\ position > Len(Traces[trace]) => PrintT(<<"admitted", trace>>)
         /\ Loud => PrintT(<<"reached", trace, position>>)
==============================================================================
