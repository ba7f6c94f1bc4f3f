------------------------------- MODULE Commit -------------------------------
(* Changes of the configuration. A commit writes two keys in one transaction, if the first is still of the version that its caller wants; a *)
(* reader that may be late shows what to expect, the transaction checks it, and its answer may be lost. A read may be made to show all that *)
(* was told before it began.                                                                                                               *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Callers,
          MaxWrites,          \* how many commits may be carried out
          MaxCalls,           \* how many calls each caller makes
          Mistake             \* "none", or the name of one

VARIABLES history,            \* all that the ensemble has held, in order: the versions of the two keys
          seen,               \* per caller, how much of that the reader of its sidecar has shown
          phase,              \* of its call
          calls,              \* how many it has made
          wanted,             \* the version that it wants
          planned,            \* what its transaction checks
          began,              \* how much there was when its call began
          caught,             \* whether the reader has caught up since
          made,               \* whether its call was carried out
          settled,            \* the newest state that somebody was told of
          needed,             \* what it was when a read began
          lost, denied, stale \* what must not happen; see below

variables == <<history, seen, phase, calls, wanted, planned, began, caught, made, settled, needed, lost, denied, stale>>

Now == history[Len(history)]
Writes == Now.a

Init ==
  /\ history = <<[a |-> 0, b |-> 0]>> /\ settled = 1 /\ lost = FALSE /\ denied = FALSE /\ stale = FALSE
  /\ seen = [c \in Callers |-> 1] /\ phase = [c \in Callers |-> "none"] /\ calls = [c \in Callers |-> 0]
  /\ wanted = [c \in Callers |-> 0] /\ planned = [c \in Callers |-> [a |-> 0, b |-> 0]] /\ began = [c \in Callers |-> 1]
  /\ caught = [c \in Callers |-> FALSE] /\ made = [c \in Callers |-> FALSE] /\ needed = [c \in Callers |-> 1]

Goes(c, to) == phase' = [phase EXCEPT ![c] = to]

See(c) ==
  /\ seen[c] < Len(history) /\ seen' = [seen EXCEPT ![c] = @ + 1]
  /\ UNCHANGED <<history, phase, calls, wanted, planned, began, caught, made, settled, needed, lost, denied, stale>>

\* The reader shows all that had been committed when it was asked to.
CatchUp(c) ==
  /\ phase[c] \in {"looks", "reads"} /\ ~caught[c]
  /\ caught' = [caught EXCEPT ![c] = TRUE] /\ seen' = [seen EXCEPT ![c] = Len(history)]
  /\ UNCHANGED <<history, phase, calls, wanted, planned, began, made, settled, needed, lost, denied, stale>>

(* ---- a commit ---- *)

Begin(c) ==
  /\ phase[c] = "none" /\ calls[c] < MaxCalls /\ calls' = [calls EXCEPT ![c] = @ + 1] /\ Goes(c, "looks")
  /\ \E version \in 0..Writes : wanted' = [wanted EXCEPT ![c] = version]
  /\ began' = [began EXCEPT ![c] = Len(history)] /\ caught' = [caught EXCEPT ![c] = FALSE] /\ made' = [made EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<history, seen, planned, settled, needed, lost, denied, stale>>

\* What the reader shows lets it be sent, or refuses it: then only if the reader has caught up, for it may show that late.
Look(c) ==
  /\ phase[c] = "looks"
  /\ LET shown == history[seen[c]] IN
     IF shown.a = wanted[c]
     THEN Goes(c, "sent") /\ planned' = [planned EXCEPT ![c] = shown] /\ UNCHANGED denied
     ELSE /\ caught[c] \/ Mistake = "believes a late reader"
          /\ Goes(c, "none") /\ UNCHANGED planned
          /\ denied' = (denied \/ made[c] \/ \A i \in began[c]..Len(history) : history[i].a = wanted[c])
  /\ UNCHANGED <<history, seen, calls, wanted, began, caught, made, settled, needed, lost, stale>>

Fits(c) == Now = planned[c] \/ Mistake = "checks no version"

\* The ensemble carries the transaction out or refuses it, also after its sender has given up on the answer.
Carry(c) ==
  /\ phase[c] \in {"sent", "adrift"} /\ Writes < MaxWrites /\ Fits(c)
  /\ \/ Mistake # "writes one key after the other" /\ history' = Append(history, [a |-> Now.a + 1, b |-> Now.b + 1])
     \/ Mistake = "writes one key after the other" /\ history' = history \o <<[a |-> Now.a + 1, b |-> Now.b], [a |-> Now.a + 1, b |-> Now.b + 1]>>
  /\ lost' = (lost \/ Now.a # wanted[c])
  /\ made' = [made EXCEPT ![c] = TRUE]
  /\ Goes(c, IF phase[c] = "sent" THEN "done" ELSE "none")
  /\ UNCHANGED <<seen, calls, wanted, planned, began, caught, settled, needed, denied, stale>>

Refuse(c) ==
  /\ phase[c] \in {"sent", "adrift"} /\ ~Fits(c)
  /\ Goes(c, IF phase[c] = "sent" THEN "refused" ELSE "none")
  /\ UNCHANGED <<history, seen, calls, wanted, planned, began, caught, made, settled, needed, lost, denied, stale>>

Told(c) ==
  /\ phase[c] = "done" /\ Goes(c, "none") /\ settled' = Len(history)
  /\ UNCHANGED <<history, seen, calls, wanted, planned, began, caught, made, needed, lost, denied, stale>>

\* It was refused for what may be different by now: it looks again, behind a reader that has caught up.
Again(c) ==
  /\ phase[c] = "refused" /\ Goes(c, "looks") /\ caught' = [caught EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<history, seen, calls, wanted, planned, began, made, settled, needed, lost, denied, stale>>

\* The answer is lost: the outcome is not known, and the caller is told so.
Lose(c) ==
  /\ phase[c] \in {"sent", "done", "refused"}
  /\ Goes(c, IF Mistake = "sends again what was not answered" THEN "looks" ELSE IF phase[c] = "sent" THEN "adrift" ELSE "none")
  /\ caught' = [caught EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<history, seen, calls, wanted, planned, began, made, settled, needed, lost, denied, stale>>

\* What is adrift never comes.
Sinks(c) ==
  /\ phase[c] = "adrift" /\ Goes(c, "none")
  /\ UNCHANGED <<history, seen, calls, wanted, planned, began, caught, made, settled, needed, lost, denied, stale>>

(* ---- a read that shows what was told ---- *)

BeginRead(c) ==
  /\ phase[c] = "none" /\ calls[c] < MaxCalls /\ calls' = [calls EXCEPT ![c] = @ + 1] /\ Goes(c, "reads")
  /\ needed' = [needed EXCEPT ![c] = settled] /\ caught' = [caught EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<history, seen, wanted, planned, began, made, settled, lost, denied, stale>>

EndRead(c) ==
  /\ phase[c] = "reads" /\ (caught[c] \/ Mistake = "reads without catching up") /\ Goes(c, "none")
  /\ stale' = (stale \/ seen[c] < needed[c])
  /\ settled' = IF seen[c] > settled THEN seen[c] ELSE settled
  /\ UNCHANGED <<history, seen, calls, wanted, planned, began, caught, made, needed, lost, denied>>

Next ==
  \E c \in Callers :
    \/ See(c) \/ CatchUp(c) \/ Begin(c) \/ Look(c) \/ Carry(c) \/ Refuse(c) \/ Told(c) \/ Again(c) \/ Lose(c) \/ Sinks(c)
    \/ BeginRead(c) \/ EndRead(c)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* A commit is carried out as a whole.
AllOrNothing == \A i \in 1..Len(history) : history[i].a = history[i].b
\* It is carried out on no other version than its caller wants, so that nobody's change is lost.
NoChangeIsLost == ~lost
\* Whoever is told that a commit cannot be carried out is told what was true during the call, and it was not carried out.
RefusalsAreTrue == ~denied
\* A read shows all that anybody had been told before it began.
ReadsShowWhatWasTold == ~stale

(* ---- what must be reached ---- *)

NothingIsMade     == Len(history) = 1
NothingIsRefused  == \A c \in Callers : phase[c] # "refused"
NothingIsAdrift   == \A c \in Callers : ~(phase[c] = "adrift" /\ Fits(c) /\ Len(history) > 1)
NothingIsTold     == settled = 1
==============================================================================
