------------------------------- MODULE Guard --------------------------------
(* Writes that are guarded by a hold: the ensemble carries one out only while the hold's place stands. A caller looks at its hold and writes *)
(* later, perhaps much later: it may be frozen in between, or its request be under way for long. All else is as in Lock.tla.               *)
EXTENDS Lock

VARIABLES writes,             \* per caller, the place that guards a write which it has begun; 0 for none
          late                \* whether one was carried out though somebody whom its place excludes could have been granted the lock

Begin(c) ==
  /\ writes[c] = 0 /\ place[c] # 0
  /\ stream[c] = "holds" \/ (Mistake = "guards by a place that waits" /\ stream[c] = "waits")
  /\ writes' = [writes EXCEPT ![c] = place[c]]
  /\ UNCHANGED <<variables, late>>

\* Somebody whom c's place excludes has been granted the lock after it, or is first in the queue.
IsAnothers(c) ==
  \E b \in Callers : Excludes(b, c) /\
    (tokens[b] > writes[c] \/ \E i \in Standing(Len(log)) : log[i].of = b /\ Before(b, i, Len(log)) = {})

\* The ensemble carries the write out or refuses it, in its order with the makings and deletions.
Commit(c) ==
  /\ writes[c] # 0 /\ writes' = [writes EXCEPT ![c] = 0]
  /\ late' = (late \/ ((writes[c] \in Standing(Len(log)) \/ Mistake = "checks no place") /\ IsAnothers(c)))
  /\ UNCHANGED variables

GuardedInit == Init /\ writes = [c \in Callers |-> 0] /\ late = FALSE
GuardedNext == (Next /\ UNCHANGED <<writes, late>>) \/ \E c \in Callers : Begin(c) \/ Commit(c)
GuardedSpec == GuardedInit /\ [][GuardedNext]_<<variables, writes, late>>

(* ---- what is promised ---- *)

\* A write guarded by a hold is carried out only before anything that the hold excludes can be granted.
GuardedWritesComeInTime == ~late

(* ---- what must be reached ---- *)

NothingIsWritten == \A c \in Callers : writes[c] = 0
NothingComesLate == \A c \in Callers : writes[c] = 0 \/ writes[c] \in Standing(Len(log))
==============================================================================
