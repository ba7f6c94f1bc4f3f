------------------------------- MODULE Repeat -------------------------------
(* What a recipe repeats by itself, such as the setting of a barrier: a transaction makes a node or deletes it, and the version that it   *)
(* checks comes again whenever the node is made anew. A lost connection leaves open whether a transaction was carried out; a server that  *)
(* stands still may have it and carry it out later, while the session lives that sent it. So the sidecar closes that session before it    *)
(* looks whether to repeat.                                                                                                               *)
EXTENDS Naturals

CONSTANTS Callers,
          MaxCalls,           \* how many calls each caller makes
          Mistake             \* "none", or the name of one

VARIABLES set,                \* whether the node is there
          phase,              \* of a caller's call
          calls,              \* how many it has made
          goal,               \* what it wants of the node
          adrift,             \* what a transaction that was not answered may still do: "nothing", "sets" or "removes"
          late                \* what must not happen; see below

variables == <<set, phase, calls, goal, adrift, late>>

Init ==
  /\ set = FALSE /\ late = FALSE
  /\ phase = [c \in Callers |-> "none"] /\ calls = [c \in Callers |-> 0] /\ goal = [c \in Callers |-> FALSE]
  /\ adrift = [c \in Callers |-> "nothing"]

Goes(c, to) == phase' = [phase EXCEPT ![c] = to]
Sets(deed) == deed = "sets"

Begin(c) ==
  /\ phase[c] = "none" /\ calls[c] < MaxCalls /\ calls' = [calls EXCEPT ![c] = @ + 1] /\ Goes(c, "looks")
  /\ \E wanted \in BOOLEAN : goal' = [goal EXCEPT ![c] = wanted]
  /\ UNCHANGED <<set, adrift, late>>

\* It looks behind a transaction of its own. If the node is as wanted there is nothing to do, and the call is answered.
Look(c) ==
  /\ phase[c] = "looks" /\ (adrift[c] = "nothing" \/ Mistake = "looks while the session lives")
  /\ Goes(c, IF set = goal[c] THEN "none" ELSE "sent")
  /\ UNCHANGED <<set, calls, goal, adrift, late>>

\* The session that sent what was not answered is closed: from then on the ensemble refuses what is adrift.
Close(c) ==
  /\ phase[c] = "looks" /\ adrift[c] # "nothing" /\ adrift' = [adrift EXCEPT ![c] = "nothing"]
  /\ UNCHANGED <<set, phase, calls, goal, late>>

Carry(c) ==
  /\ phase[c] = "sent" /\ set # goal[c] /\ set' = goal[c] /\ Goes(c, "done")
  /\ UNCHANGED <<calls, goal, adrift, late>>

\* Somebody else was faster.
Refuse(c) ==
  /\ phase[c] = "sent" /\ set = goal[c] /\ Goes(c, "looks")
  /\ UNCHANGED <<set, calls, goal, adrift, late>>

Told(c) ==
  /\ phase[c] = "done" /\ Goes(c, "none")
  /\ UNCHANGED <<set, calls, goal, adrift, late>>

\* The connection is lost, and with it the answer.
Lose(c) ==
  /\ phase[c] \in {"sent", "done"} /\ adrift[c] = "nothing" /\ Goes(c, "looks")
  /\ adrift' = [adrift EXCEPT ![c] = IF phase[c] = "done" THEN "nothing" ELSE IF goal[c] THEN "sets" ELSE "removes"]
  /\ UNCHANGED <<set, calls, goal, late>>

\* The server goes on.
Comes(c) ==
  /\ adrift[c] # "nothing" /\ set # Sets(adrift[c]) /\ set' = Sets(adrift[c]) /\ adrift' = [adrift EXCEPT ![c] = "nothing"]
  /\ late' = (late \/ phase[c] = "none" \/ goal[c] # Sets(adrift[c]))
  /\ UNCHANGED <<phase, calls, goal>>

Next == \E c \in Callers : Begin(c) \/ Look(c) \/ Close(c) \/ Carry(c) \/ Refuse(c) \/ Told(c) \/ Lose(c) \/ Comes(c)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* A call that was answered does nothing any more.
AnsweredCallsDoNothing == ~late

(* ---- what must be reached ---- *)

NobodyComesBetween == \A c, d \in Callers : ~(phase[c] = "looks" /\ adrift[c] # "nothing" /\ phase[d] = "done")
NothingIsClosed    == \A c \in Callers : ~(phase[c] = "looks" /\ adrift[c] # "nothing" /\ set = goal[c])
==============================================================================
