-------------------------------- MODULE Mark --------------------------------
(* Until when nobody can have asked for a place's end: the formula of internal/zookeeper, "When nobody can have asked for a place's end".  *)
(* Whoever breaks a hold writes that into the place's node, waits for longer than the session can be valid, and removes the place whether *)
(* or not its sidecar has heard of it: the reader that would show it may be late, or blind. The session's own proof is Session.tla's, and  *)
(* is taken for granted here. Others may overwrite what is asked.                                                                          *)
EXTENDS Naturals, Sequences

CONSTANTS T,                  \* for how long something certain counts
          Wait,               \* for how long who asks waits
          MaxTime, MaxVersion,
          Mistake             \* "none", or the name of one

VARIABLES clock,
          data,               \* per version of the node's data, in order, whether it asks for the end; the first is what the place was made with
          standing,           \* whether the place stands
          shown,              \* how many versions the reader has shown
          seen,               \* the newest that its owner has found nothing in that ends it
          barrier,            \* no newer version had been committed by then
          beat,               \* a heartbeat: [step |-> "none", "sent", "done", sent, version, holds]
          over,               \* the hold has ended here
          until,              \* until when its caller counts on it, who may be frozen
          asker               \* who asks for the end: [step |-> "no", "asks", "waits", since, version]

variables == <<clock, data, standing, shown, seen, barrier, beat, over, until, asker>>

NoBeat == [step |-> "none", sent |-> 0, version |-> 0, holds |-> FALSE]
NoAsker == [step |-> "no", since |-> 0, version |-> 0]
Max(a, b) == IF a > b THEN a ELSE b

\* The request that makes the place was sent at 0.
Init ==
  /\ clock = 0 /\ data = <<FALSE>> /\ standing = TRUE /\ shown = 1 /\ seen = 1 /\ barrier = 0 /\ beat = NoBeat
  /\ over = FALSE /\ until = 0 /\ asker = NoAsker

Valid == ~over /\ clock < barrier + T

Tick ==
  /\ clock < MaxTime /\ clock' = clock + 1
  /\ over' = (over \/ clock' >= barrier + T) \* a deadline that has passed stays so
  /\ UNCHANGED <<data, standing, shown, seen, barrier, beat, until, asker>>

(* ---- heartbeats, which check the version ---- *)

Beat ==
  /\ beat.step = "none" /\ Valid /\ beat' = [step |-> "sent", sent |-> clock, version |-> seen, holds |-> FALSE]
  /\ UNCHANGED <<clock, data, standing, shown, seen, barrier, over, until, asker>>

Execute ==
  /\ beat.step = "sent"
  /\ beat' = [beat EXCEPT !.step = "done", !.holds = standing /\ (Len(data) = beat.version \/ Mistake = "heartbeats check no data")]
  /\ UNCHANGED <<clock, data, standing, shown, seen, barrier, over, until, asker>>

Answer ==
  /\ beat.step = "done" /\ beat' = NoBeat
  /\ barrier' = IF beat.holds /\ Valid THEN Max(barrier, IF Mistake = "counts from the answer" THEN clock ELSE beat.sent) ELSE barrier
  /\ UNCHANGED <<clock, data, standing, shown, seen, over, until, asker>>

Lose ==
  /\ beat.step # "none" /\ beat' = NoBeat
  /\ UNCHANGED <<clock, data, standing, shown, seen, barrier, over, until, asker>>

(* ---- what the owner sees, and tells ---- *)

Show ==
  /\ shown < Len(data) /\ shown' = shown + 1
  /\ UNCHANGED <<clock, data, standing, seen, barrier, beat, over, until, asker>>

Look ==
  /\ Valid /\ shown > seen
  /\ IF data[shown] /\ Mistake # "takes what is asked for seen"
     THEN over' = TRUE /\ UNCHANGED seen
     ELSE seen' = shown /\ UNCHANGED over
  /\ UNCHANGED <<clock, data, standing, shown, barrier, beat, until, asker>>

Tell ==
  /\ Valid /\ until' = Max(until, barrier + T)
  /\ UNCHANGED <<clock, data, standing, shown, seen, barrier, beat, over, asker>>

(* ---- who asks for the end ---- *)

Ask ==
  /\ asker.step = "no" /\ standing /\ asker' = [step |-> "asks", since |-> clock, version |-> 0]
  /\ UNCHANGED <<clock, data, standing, shown, seen, barrier, beat, over, until>>

\* The request is carried out, and answered.
Mark ==
  /\ asker.step = "asks" /\ Len(data) < MaxVersion
  /\ data' = Append(data, TRUE)
  /\ asker' = [step |-> "waits", since |-> IF Mistake = "waits from when it has asked" THEN asker.since ELSE clock, version |-> Len(data) + 1]
  /\ UNCHANGED <<clock, standing, shown, seen, barrier, beat, over, until>>

Overwrite ==
  /\ standing /\ Len(data) < MaxVersion /\ data' = Append(data, FALSE)
  /\ UNCHANGED <<clock, standing, shown, seen, barrier, beat, over, until, asker>>

\* It looks once more, and removes only what it has marked itself.
Remove ==
  /\ asker.step = "waits" /\ clock >= asker.since + Wait
  /\ asker' = NoAsker
  /\ standing' = (standing /\ Len(data) # asker.version /\ Mistake # "removes without a last look")
  /\ UNCHANGED <<clock, data, shown, seen, barrier, beat, over, until>>

Next == Tick \/ Beat \/ Execute \/ Answer \/ Lose \/ Show \/ Look \/ Tell \/ Ask \/ Mark \/ Overwrite \/ Remove

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* When a place has been removed from outside, nothing that was told of it counts any more.
NobodyCountsOnWhatWasRemoved == standing \/ clock >= until

(* ---- what must be reached ---- *)

NothingIsRemoved     == standing
NobodyIsTold         == until = 0
NoBarrierMoves       == barrier = 0
NothingIsOverwritten == ~(asker.step = "waits" /\ Len(data) > asker.version)
NothingNewIsSeen     == seen = 1
==============================================================================
