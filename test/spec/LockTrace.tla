------------------------------ MODULE LockTrace ------------------------------
(* Whether what the running code and the ensemble have done about a lock can be done in Lock.tla. A trace is what was told, step by step;  *)
(* each step takes the one of Lock.tla that it names, with what was told of it. What is not told, TLC fills in: how much of the log a       *)
(* sidecar had seen as it was granted the lock, and that a creation was not carried out. What Lock.tla takes for granted is asked for here: *)
(* a sidecar has ended the session by the time the ensemble does. Each trace that can be taken to its end is told; the others are refused. *)
EXTENDS Lock, Traces, TLC

CONSTANT Loud     \* whether each step that is reached is told

VARIABLES trace,  \* which
          position, \* the step that comes next
          absent  \* callers whose creation was found not to have been carried out, and who have not asked again

Told    == <<trace, position, absent>>
Step    == Traces[trace][position]
Caller  == Step.caller
Carried == /\ asked[Caller] = "sent" /\ Create(Caller) /\ log' # log
Failed  == /\ asked[Caller] = "sent" /\ Create(Caller) /\ log' = log

TraceInit == Init /\ trace \in 1..Len(Traces) /\ position = 1 /\ absent = {}

(* ---- what is not told ---- *)

\* No more is seen than it takes: whoever has seen less can do all that whoever has seen more can.
Fill ==
  /\ Caller # 0
  /\ \/ Step.kind = "granted" /\ ~ENABLED Grant(Caller) /\ See(Caller)
     \/ Step.kind \in {"absent", "lost"} /\ Failed
  /\ UNCHANGED Told

(* ---- what is told ---- *)

\* By its holder's own hand if it is held; whoever waits counts on nothing.
GivesUp(c) ==
  CASE stream[c] = "holds" -> Release(c)
    [] stream[c] = "waits" -> Force(c)
    [] OTHER -> UNCHANGED variables

Ends(c) == IF stream[c] \in {"waits", "holds"} THEN Force(c) ELSE UNCHANGED variables

\* With all that is promised of it, as it is granted.
IsGranted(c) ==
  /\ Step.place = place[c] /\ Grant(c)
  /\ Step.token = place[c] /\ \A b \in Callers : tokens[b] < Step.token
  /\ OneStreamHolds' /\ OneCallerIsSure'

Take(c) ==
  CASE Step.kind = "asked" -> IF c \in absent THEN asked[c] = "sent" /\ UNCHANGED variables ELSE Ask(c)
    [] Step.kind = "created" -> Step.place = Len(log) + 1 /\ Carried
    [] Step.kind = "made" -> asked[c] = "no" /\ place[c] = Step.place /\ UNCHANGED variables
    [] Step.kind = "found" -> Search(c) /\ place'[c] = Step.place
    [] Step.kind = "absent" -> Search(c) /\ place'[c] = 0
    [] Step.kind = "granted" -> IsGranted(c)
    [] Step.kind = "leaving" -> GivesUp(c)
    [] Step.kind = "closing" -> GivesUp(c)
    [] Step.kind = "over" -> Ends(c)
    [] Step.kind = "deleted" -> place[c] = Step.place /\ GiveUp(c) /\ log' # log
    [] Step.kind = "left" -> stream[c] = "none" /\ place[c] = 0 /\ UNCHANGED variables
    [] Step.kind = "lost" -> IF stream[c] = "none" THEN UNCHANGED variables ELSE stream[c] = "ended" /\ Lose(c)
    [] OTHER -> FALSE

Over == Step.kind = "end" /\ Standing(Len(log)) = {} /\ (\A c \in Callers : stream[c] = "none") /\ UNCHANGED variables

Follow ==
  /\ IF Caller = 0 THEN Over ELSE Take(Caller)
  /\ position' = position + 1 /\ UNCHANGED trace
  /\ absent' = CASE Step.kind = "absent" -> absent \union {Caller}
                 [] Step.kind \in {"asked", "lost"} -> absent \ {Caller}
                 [] OTHER -> absent

TraceNext == position <= Len(Traces[trace]) /\ (Fill \/ Follow)

TraceSpec == TraceInit /\ [][TraceNext]_<<variables, Told>>

Tells == /\ position > Len(Traces[trace]) => PrintT(<<"admitted", trace>>)
         /\ Loud => PrintT(<<"reached", trace, position>>)
==============================================================================
