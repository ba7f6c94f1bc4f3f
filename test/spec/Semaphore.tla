------------------------------ MODULE Semaphore ------------------------------
(* The permits of a semaphore: recipes/semaphore_permits.go. A caller makes a node for each of its permits, and has them once a list that     *)
(* shows all of its nodes shows no more nodes than the limit, which is read behind that list. Its reader shows what was committed, in order,  *)
(* and as late as it likes. Sessions are Session.tla's: who is sure of its permits has their nodes. Nothing here rests on the queue of those  *)
(* who wait, which may be empty, or another's: it only keeps two from waiting for each other.                                                *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Callers, Wants,     \* how many permits each caller wants at a time
          Limits,             \* what the limit may be
          MaxLog,
          Mistake             \* "none", or the name of one

VARIABLES log,                \* all committed states: [nodes, limit], nodes per caller
          shown,              \* per caller, how much its reader has shown
          made,               \* per caller, at which state its last node stood; 0 for none
          step,               \* per caller: "away", "makes", "looks", "listed", "sure", "leaves"
          most,               \* per caller, what the list told that it goes by, as how many permits are left with its own
          excess              \* whether permits were granted beyond every limit since their nodes stood

variables == <<log, shown, made, step, most, excess>>

Now == log[Len(log)]
Commit(nodes, limit) == log' = Append(log, [nodes |-> nodes, limit |-> limit])
Free == Len(log) < MaxLog

RECURSIVE Sum(_, _)
Sum(of, callers) == IF callers = {} THEN 0 ELSE LET c == CHOOSE c \in callers : TRUE IN of[c] + Sum(of, callers \ {c})

Init ==
  /\ \E limit \in Limits : log = <<[nodes |-> [c \in Callers |-> 0], limit |-> limit]>>
  /\ shown = [c \in Callers |-> 1] /\ made = [c \in Callers |-> 0] /\ step = [c \in Callers |-> "away"]
  /\ most = [c \in Callers |-> 0] /\ excess = FALSE

Make(c) ==
  /\ Free /\ step[c] \in {"away", "makes"} /\ Now.nodes[c] < Wants
  /\ Commit([Now.nodes EXCEPT ![c] = @ + 1], Now.limit)
  /\ LET all == Now.nodes[c] + 1 = Wants IN
     /\ step' = [step EXCEPT ![c] = IF all THEN "looks" ELSE "makes"]
     /\ made' = [made EXCEPT ![c] = IF all THEN Len(log) + 1 ELSE 0]
  /\ UNCHANGED <<shown, most, excess>>

Show(c) ==
  /\ shown[c] < Len(log) /\ shown' = [shown EXCEPT ![c] = @ + 1]
  /\ UNCHANGED <<log, made, step, most, excess>>

\* The list shows all of its own nodes, whose names were nobody's before, unless it was read before them.
List(c) ==
  /\ step[c] = "looks" /\ (shown[c] >= made[c] \/ Mistake = "lists before its nodes stand")
  /\ LET counted == IF Mistake = "does not count its own" THEN Callers \ {c} ELSE Callers IN
     most' = [most EXCEPT ![c] = Sum(log[shown[c]].nodes, counted)]
  /\ step' = [step EXCEPT ![c] = "listed"]
  /\ UNCHANGED <<log, shown, made, excess>>

\* The limit is what the reader shows then, or once more.
Limit(c) == IF Mistake = "reads the limit before its nodes stand" THEN log[1].limit ELSE log[shown[c]].limit

Wait(c) ==
  /\ step[c] = "listed" /\ most[c] > Limit(c) /\ step' = [step EXCEPT ![c] = "looks"]
  /\ UNCHANGED <<log, shown, made, most, excess>>

Sure == {c \in Callers : step[c] = "sure"}

Grant(c) ==
  /\ step[c] = "listed" /\ most[c] <= Limit(c) /\ step' = [step EXCEPT ![c] = "sure"]
  /\ excess' = (excess \/ \A i \in made[c]..Len(log) : Wants * (Cardinality(Sure) + 1) > log[i].limit)
  /\ UNCHANGED <<log, shown, made, most>>

\* The end is told before the first node goes; also that of a session.
End(c) ==
  /\ step[c] = "sure" /\ Mistake # "its nodes go first" /\ step' = [step EXCEPT ![c] = "leaves"]
  /\ UNCHANGED <<log, shown, made, most, excess>>

Leave(c) ==
  /\ Free /\ Now.nodes[c] > 0
  /\ step[c] \in {"looks", "makes", "listed", "leaves"} \/ Mistake = "its nodes go first"
  /\ Commit([Now.nodes EXCEPT ![c] = 0], Now.limit)
  /\ step' = [step EXCEPT ![c] = IF step[c] = "sure" THEN "sure" ELSE "away"]
  /\ made' = [made EXCEPT ![c] = 0]
  /\ UNCHANGED <<shown, most, excess>>

Resize ==
  /\ Free /\ \E limit \in Limits \ {Now.limit} : Commit(Now.nodes, limit)
  /\ UNCHANGED <<shown, made, step, most, excess>>

Next == Resize \/ \E c \in Callers : Make(c) \/ Show(c) \/ List(c) \/ Wait(c) \/ Grant(c) \/ End(c) \/ Leave(c)
Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* Permits are granted only while those that are held, with them, are no more than the limit at some moment since their nodes stood.
NoMoreThanTheLimit == ~excess

(* ---- what must be reached ---- *)

NobodyIsSure == Sure = {}
NoTwoAreSure == Cardinality(Sure) < 2
NobodyWaits == \A c \in Callers : step[c] # "listed" \/ most[c] <= Limit(c)
NothingShrinksBelowWhatIsHeld == Wants * Cardinality(Sure) <= Now.limit
==============================================================================
