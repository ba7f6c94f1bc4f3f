-------------------------------- MODULE Delay --------------------------------
(* A lock whose holds may have a delay: the rules of recipes/lock_delay.go. When a hold ends otherwise than by its holder's own hand,    *)
(* nobody is granted the lock before its delay is over. Places are taken one after the other and are ephemeral; `standing` and `data` are *)
(* what the ensemble has, and each write may be carried out late and its answer be lost. That a hold has ended for its holder before its *)
(* place goes is what Lock.tla shows, and is taken for granted here: it ends with its place. Everybody's clock is right: those that are   *)
(* not make the delay longer.                                                                                                            *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Delays,             \* that holds may have; 0 is none
          MaxTime, MaxPlaces,
          Mistake             \* "none", or the name of one

VARIABLES now,
          places,             \* all that were taken: [delay, any: may there be a delay to wait for, came]; a place's number is its token
          standing,
          data,               \* of the lock's directory: whose hold it tells of, the delay after that, and when it was written
          older,              \* what they were before, where a mistake wants it
          stage,              \* per place, "waits", "first", "says", "holds", "leaves" or "gone"
          asks,               \* per place, the write that is under way: "none", "held" or "free"
          answered,           \* per place, whether what it says has been written
          written,            \* per place, whether it has had anything written
          waits, since,       \* per place, whose delay it waits for, and when it has seen that one gone
          over                \* when the delay of each lost hold is over

variables == <<now, places, standing, data, older, stage, asks, answered, written, waits, since, over>>

Places == 1..MaxPlaces
Nothing == [token |-> 0, delay |-> 0, at |-> 0]
Taken == 1..Len(places)
First(i) == \A j \in standing : j >= i
Max(a, b) == IF a > b THEN a ELSE b

Init ==
  /\ now = 1 /\ places = <<>> /\ standing = {} /\ data = Nothing /\ older = Nothing /\ over = 0
  /\ stage = [i \in Places |-> "none"] /\ asks = [i \in Places |-> "none"] /\ answered = [i \in Places |-> FALSE]
  /\ written = [i \in Places |-> FALSE] /\ waits = [i \in Places |-> 0] /\ since = [i \in Places |-> 0]

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<places, standing, data, older, stage, asks, answered, written, waits, since, over>>

\* What no rule looks at is not kept, but for those who make a mistake.
Only(mistake, value, otherwise) == IF Mistake = mistake THEN value ELSE otherwise
Put(d) == data' = d /\ older' = Only("does not catch up", data, Nothing)
Went(i) ==
  /\ stage' = [stage EXCEPT ![i] = "gone"] /\ answered' = [answered EXCEPT ![i] = FALSE] /\ written' = [written EXCEPT ![i] = FALSE]
  /\ waits' = [waits EXCEPT ![i] = 0] /\ since' = [since EXCEPT ![i] = 0]

(* ---- a place, and its turn ---- *)

\* The list that comes with the place tells of the directory's data, and the names in it who may write some later.
Join(delay) ==
  /\ Len(places) < MaxPlaces
  /\ LET ahead == Mistake # "looks at the directory alone" /\ \E j \in standing : places[j].delay > 0
         there == Mistake # "looks at names alone" /\ data.token > 0
     IN places' = Append(places, [delay |-> delay, any |-> ahead \/ there, came |-> Only("counts from when it came", now, 0)])
  /\ standing' = standing \union {Len(places) + 1} /\ stage' = [stage EXCEPT ![Len(places) + 1] = "waits"]
  /\ UNCHANGED <<now, data, older, asks, answered, written, waits, since, over>>

\* All ahead have gone. Who has no delay, and whom nothing tells of one, is granted the lock.
Turn(i) ==
  /\ stage[i] = "waits" /\ i \in standing /\ First(i)
  /\ stage' = [stage EXCEPT ![i] = IF places[i].delay = 0 /\ ~places[i].any THEN "holds" ELSE "first"]
  /\ UNCHANGED <<now, places, standing, data, older, asks, answered, written, waits, since, over>>

\* It reads the directory, after it has caught up, and waits for the delay that it finds, or says what is true of itself.
Begun(i, said) ==
  CASE Mistake = "counts from when it came" -> places[i].came
    [] Mistake = "counts from the grant" -> said.at
    [] waits[i] = said.token -> since[i]
    [] OTHER -> now

Read(i) ==
  /\ stage[i] = "first"
  /\ \E said \in {data} \union (IF Mistake = "does not catch up" THEN {older} ELSE {}) :
     IF said.delay > 0 /\ said.token # i /\ now < Begun(i, said) + said.delay
     THEN /\ waits' = [waits EXCEPT ![i] = said.token] /\ since' = [since EXCEPT ![i] = Begun(i, said)]
          /\ UNCHANGED <<stage, asks, written>>
     ELSE LET silent == said.token = i \/ (places[i].delay = 0 /\ said.delay = 0) IN
          /\ stage' = [stage EXCEPT ![i] = IF silent \/ Mistake = "is granted before it has said" THEN "holds" ELSE "says"]
          /\ asks' = IF silent THEN asks ELSE [asks EXCEPT ![i] = "held"]
          /\ written' = [written EXCEPT ![i] = places[i].delay > 0]
          /\ UNCHANGED <<waits, since>>
  /\ UNCHANGED <<now, places, standing, data, older, answered, over>>

\* Each write checks the place or deletes it.
Write(i) ==
  /\ asks[i] # "none" /\ asks' = [asks EXCEPT ![i] = "none"]
  /\ LET held == asks[i] = "held"
         late == i \notin standing /\ Mistake # (IF held THEN "says without its place" ELSE "frees without its place")
     IN IF late THEN UNCHANGED <<standing, data, older, answered>>
        ELSE /\ Put([token |-> i, delay |-> IF held THEN places[i].delay ELSE 0, at |-> Only("counts from the grant", now, 0)])
             /\ standing' = IF held THEN standing ELSE standing \ {i}
             /\ answered' = [answered EXCEPT ![i] = held /\ stage[i] = "says"]
  /\ UNCHANGED <<now, places, stage, written, waits, since, over>>

Hear(i) ==
  /\ stage[i] = "says" /\ answered[i] /\ stage' = [stage EXCEPT ![i] = "holds"] /\ answered' = [answered EXCEPT ![i] = FALSE]
  /\ UNCHANGED <<now, places, standing, data, older, asks, written, waits, since, over>>

\* It hears nothing, and looks again. What it has asked for may be carried out yet.
HearNothing(i) ==
  /\ stage[i] = "says" /\ stage' = [stage EXCEPT ![i] = "first"] /\ answered' = [answered EXCEPT ![i] = FALSE]
  /\ UNCHANGED <<now, places, standing, data, older, asks, written, waits, since, over>>

(* ---- how it ends ---- *)

\* By its holder's own hand, or by that of one who waits. No delay follows a hold of which something is written.
LetGo(i) ==
  /\ stage[i] \in {"waits", "first", "says", "holds"} /\ i \in standing
  /\ stage' = [stage EXCEPT ![i] = "leaves"]
  /\ asks' = IF written[i] \/ (Mistake = "frees what it waits for" /\ waits[i] # 0) THEN [asks EXCEPT ![i] = "free"] ELSE asks
  /\ UNCHANGED <<now, places, standing, data, older, answered, written, waits, since, over>>

\* In any case the place goes.
Leave(i) ==
  /\ stage[i] = "leaves" /\ Went(i) /\ standing' = standing \ {i}
  /\ UNCHANGED <<now, places, data, older, asks, over>>

\* Its session ends, or it is broken or revoked.
Lose(i) ==
  /\ i \in standing /\ standing' = standing \ {i} /\ Went(i)
  /\ over' = IF stage[i] = "holds" THEN Max(over, now + places[i].delay) ELSE over
  /\ UNCHANGED <<now, places, data, older, asks>>

\* A directory that was not made to stay goes some time after the last place in it.
Reap ==
  /\ Mistake = "does not keep the directory" /\ standing = {} /\ data # Nothing /\ Put(Nothing)
  /\ UNCHANGED <<now, places, standing, stage, asks, answered, written, waits, since, over>>

Next ==
  \/ Tick \/ Reap \/ \E delay \in Delays : Join(delay)
  \/ \E i \in Taken : Turn(i) \/ Read(i) \/ Write(i) \/ Hear(i) \/ HearNothing(i) \/ LetGo(i) \/ Leave(i) \/ Lose(i)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* Nobody holds the lock before the delay of each lost hold is over.
NobodyIsGrantedTooEarly == now < over => \A i \in Taken : stage[i] # "holds"

(* ---- what must be reached ---- *)

NobodyWaitsForADelay     == \A i \in Taken : waits[i] = 0
NobodyTakesOver          == \A i \in Taken : waits[i] \in {0, i - 1}
NobodyIsGrantedAfterwards == over > 0 => \A i \in Taken : stage[i] # "holds"
NothingIsFreed           == \A i \in Taken : ~(data.token = i /\ data.delay = 0 /\ places[i].delay > 0)
NoWriteComesLate         == \A i \in Taken : asks[i] = "none" \/ i \in standing
==============================================================================
