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
          carried, \* those of them whose stream is their lease's
          closed, \* those whose end was handed to the transport, or whose stream nobody reads
          stopped \* those who have said on their lease's stream that they count on nothing of it

Told    == <<trace, position, absent, served, carried, closed, stopped>>
Step    == Traces[trace][position]
Caller  == Step.caller
Succeeds == /\ asked[Caller] = "sent" /\ Create(Caller) /\ log' # log
Failed   == /\ asked[Caller] = "sent" /\ Create(Caller) /\ log' = log

TraceInit == Init /\ trace \in 1..Len(Traces) /\ position = 1 /\ absent = {} /\ served = {} /\ carried = {} /\ closed = {} /\ stopped = {}

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

\* Its end has been told before, or its caller has not waited for that.
Leaves(c) == (c \in served => c \in closed \union stopped) /\ GivesUp(c)

IsEnded(c) ==
  /\ stream[c] = "holds"
  /\ IF c \in stopped THEN Release(c) ELSE IF c \in carried THEN Fade(c) ELSE Force(c)

\* Of a hold that its caller has given up on its lease's stream, the end is told when its place has gone, if at all.
IsHanded(c) == IF stream[c] = "ending" THEN Hand(c) ELSE stream[c] = "ended" /\ UNCHANGED variables

IsStopped(c) == IF stream[c] \in {"ending", "ended"} /\ ~acknowledged[c] THEN Hear(c) ELSE stream[c] # "waits" /\ UNCHANGED variables

Ends(c) == IF stream[c] \in {"waits", "holds"} /\ c \notin served THEN Force(c) ELSE UNCHANGED variables

\* What was told of the lease before the hold ended, or before its lease's stream has told that, is told of the hold.
IsTold(c) == IF Promised = "lease" /\ ~Counts(c, Promised) THEN UNCHANGED variables ELSE Read(c, Promised)

\* The ensemble has ended its session, with its place if that stood still.
IsLost(c) ==
  CASE stream[c] = "none" -> UNCHANGED variables
    [] stream[c] = "ending" -> Lose(c)
    [] stream[c] = "ended" -> Lose(c) \/ (acknowledged[c] /\ GiveUp(c))
    [] OTHER -> FALSE

\* With all that is promised of it, as it is granted.
IsGranted(c) ==
  /\ Step.place = place[c] /\ Grant(c)
  /\ Step.token = place[c] /\ \A b \in Callers : Excludes(b, c) => tokens[b] < Step.token
  /\ OneStreamHolds' /\ OneCallerIsSure'

Take(c) ==
  CASE Step.kind = "asked" -> IF c \in absent THEN asked[c] = "sent" /\ UNCHANGED variables ELSE Ask(c)
    [] Step.kind = "created" -> Step.place = Len(log) + 1 /\ Succeeds
    [] Step.kind = "made" -> asked[c] = "no" /\ place[c] = Step.place /\ UNCHANGED variables
    [] Step.kind = "found" -> Search(c) /\ place'[c] = Step.place
    [] Step.kind = "absent" -> Search(c) /\ place'[c] = 0
    [] Step.kind = "granted" -> IsGranted(c)
    [] Step.kind = "still" -> ~(stream[c] = "waits" /\ place[c] = Step.place) /\ UNCHANGED variables
    [] Step.kind \in {"held", "carried"} -> stream[c] = "holds" /\ UNCHANGED variables
    [] Step.kind = "promised" -> stream[c] = "holds" /\ UNCHANGED variables
    [] Step.kind \in DOMAIN Promise -> IsTold(c)
    [] Step.kind \in DOMAIN Heard -> Heard[Step.kind] \in counts[c] /\ UNCHANGED variables
    [] Step.kind = "expires" -> IF ENABLED Expires(c) THEN Expires(c) ELSE UNCHANGED variables
    [] Step.kind = "released" -> Release(c)
    [] Step.kind = "ended" -> IsEnded(c)
    [] Step.kind = "status" -> IsHanded(c)
    [] Step.kind = "unread" -> c \in carried /\ IsHanded(c)
    [] Step.kind = "stopped" -> (c \in carried \/ stream[c] = "none") /\ IsStopped(c)
    [] Step.kind \in {"acknowledged", "deserted"} -> IF acknowledged[c] THEN UNCHANGED variables ELSE Hear(c)
    [] Step.kind = "buried" -> stream[c] \in {"ended", "none"} /\ UNCHANGED variables
    [] Step.kind = "leaving" -> Leaves(c)
    [] Step.kind = "closing" -> Leaves(c)
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
  /\ served' = CASE Step.kind \in {"held", "carried"} -> served \union {Caller}
                 [] Caller # 0 /\ stream'[Caller] = "none" -> served \ {Caller}
                 [] OTHER -> served
  /\ carried' = (IF Step.kind = "carried" THEN carried \union {Caller} ELSE carried) \intersect served'
  /\ closed' = (IF Step.kind \in {"status", "unread"} THEN closed \union {Caller} ELSE closed) \intersect served'
  /\ stopped' = (IF Step.kind = "stopped" THEN stopped \union {Caller} ELSE stopped) \intersect served'

TraceNext == position <= Len(Traces[trace]) /\ (Fill \/ Follow)

TraceSpec == TraceInit /\ [][TraceNext]_<<variables, Told>>

Tells == /\ position > Len(Traces[trace]) => PrintT(<<"admitted", trace>>)
         /\ Loud => PrintT(<<"reached", trace, position>>)
==============================================================================
