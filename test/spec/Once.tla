-------------------------------- MODULE Once --------------------------------
(* Work that is done once, and the ticks of a schedule: the rules of recipes/once.go and recipes/schedule.go. A caller stands in the queue  *)
(* of the lock. The first one there reads the record of the work, and the sidecar tells it `begun` once its attempt is written. That is one *)
(* transaction, which checks the caller's place and the version that was read. Its reply may be lost. It may then be carried out late,      *)
(* unless the session ends that has sent it. That a place stands while its caller counts is what Lock.tla shows, and is taken for granted   *)
(* here. A frozen caller does not know that its hold is over: it counts no more, and may still ask for what a holder asks for. Clocks are   *)
(* taken for granted, too: a record is old when both of them say so, and any tick may be due. Left out are the runs of a schedule, its      *)
(* Reset and its removal.                                                                                                                   *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Of,                 \* "once" or "schedule"
          MaxPlaces,          \* how many places are taken
          MaxAttempts,        \* how many attempts there may be at one key or tick
          Repeats,            \* after which state another attempt follows: "begun" is that of a lost one
          MaxAdrift,          \* how many writes may be adrift at a time
          MaxTick, MaxPuts,   \* of a schedule
          Mistake             \* "none", or the name of one

VARIABLES node,               \* the record, or the schedule
          older,              \* all that it was before, where a mistake wants it
          places,             \* all that were taken, in order: what for, and for which attempt; a place's number is its token
          standing,
          stage,              \* per place, "none", "waits", "sent", "done", "told" or "over"
          sent,               \* per place, the write that is under way
          adrift,             \* those whose replies are lost, and which may be carried out yet
          counts,             \* per place, whether its caller was told `begun`, and its hold is not over by its own lease
          begun,              \* per place, the version of its attempt that the sidecar knows; 0 for none
          puts,               \* how often the schedule's rule has changed
          kept,               \* whether SUCCEEDED was recorded and is to be kept
          last,               \* the newest attempt that was told: [tick, attempt], while the record is kept
          wrong               \* what must not happen; see below

variables == <<node, older, places, standing, stage, sent, adrift, counts, begun, puts, kept, last, wrong>>

Places == 1..MaxPlaces
Taken == 1..Len(places)
First(i) == i \in standing /\ \A j \in standing : j >= i

\* Of what there is no more is the version 0. `tick` is the last one that has begun, and `next` the only one that can begin.
Missing == [state |-> "none", version |-> 0, token |-> 0, attempt |-> 0, tick |-> 0, next |-> 0, old |-> FALSE]

\* There is no record yet, or one of an attempt that has failed, or one whose time is over.
Begins ==
  IF Of = "schedule" THEN {[Missing EXCEPT !.state = "failed", !.version = 1, !.next = 1]}
  ELSE {Missing} \union {[Missing EXCEPT !.state = "failed", !.version = 2, !.attempt = 1, !.old = is] : is \in BOOLEAN}

Init ==
  /\ node \in Begins /\ older = {} /\ places = <<>> /\ standing = {} /\ puts = 0 /\ kept = FALSE
  /\ last = [tick |-> 0, attempt |-> IF node.old THEN 0 ELSE node.attempt] /\ wrong = {}
  /\ stage = [i \in Places |-> "none"] /\ sent = [i \in Places |-> {}] /\ adrift = {}
  /\ counts = [i \in Places |-> FALSE] /\ begun = [i \in Places |-> 0]

Goes(i, to) == stage' = [stage EXCEPT ![i] = to]
Only(mistake, value, otherwise) == IF Mistake = mistake THEN value ELSE otherwise
Done == node.state = "succeeded" /\ ~node.old

(* ---- a place ---- *)

\* For an attempt, to record the outcome of one that is over, or to remove a record whose time is over.
Join(for, of) ==
  /\ Len(places) < MaxPlaces
  /\ CASE for = "begin"  -> Of = "schedule" \/ ~Done
       [] for = "finish" -> Of = "once" /\ node.state = "begun" /\ node.token = of /\ stage[of] = "over"
       [] for = "clean"  -> Of = "once" /\ node.old
  /\ places' = Append(places, [for |-> for, of |-> of])
  /\ standing' = standing \union {Len(places) + 1} /\ Goes(Len(places) + 1, "waits")
  /\ UNCHANGED <<node, older, sent, adrift, counts, begun, puts, kept, last, wrong>>

\* A hold ends for its caller, whether that knows it or not.
RunOut(i) ==
  /\ counts[i] /\ counts' = [counts EXCEPT ![i] = FALSE]
  /\ UNCHANGED <<node, older, places, standing, stage, sent, adrift, begun, puts, kept, last, wrong>>

\* Then its place may go, as may that of a caller that was told nothing. A caller that is frozen asks for more; of the others nothing is left
\* but a write that is adrift.
Lose(i) ==
  /\ i \in standing /\ (~counts[i] \/ Mistake = "a session ends before what was told") /\ standing' = standing \ {i}
  /\ IF stage[i] \in {"told", "over"} THEN UNCHANGED <<stage, sent, begun>>
     ELSE Goes(i, "none") /\ sent' = [sent EXCEPT ![i] = {}] /\ begun' = [begun EXCEPT ![i] = 0]
  /\ UNCHANGED <<node, older, places, adrift, counts, puts, kept, last, wrong>>

(* ---- what the first one has written ---- *)

Attempt(of, i, number, tick, next) ==
  [of EXCEPT !.state = "begun", !.token = i, !.attempt = number, !.tick = tick, !.next = next, !.old = FALSE]

Checks(i) == Only("writes without a check of its place", 0, i)
Write(of, place, to) == [version |-> of.version, place |-> place, gives |-> FALSE, to |-> to]

More(of) == of.state \in Repeats /\ (of.attempt < MaxAttempts \/ Mistake = "repeats without end")

\* The attempts that a caller may write: of a key, the one that follows what it has read.
AtKey(of, i) ==
  IF of = Missing \/ of.old THEN {Attempt(of, i, 1, 0, 0)}
  ELSE IF of.state # "succeeded" /\ More(of) THEN {Attempt(of, i, of.attempt + 1, 0, 0)} ELSE {}

\* Of a schedule, a lost one again if its tick is not too late, else one at the last tick that is due. What comes to nothing is noted alone.
AtTick(of, i) ==
  (IF of.state = "begun" /\ More(of) THEN {Attempt(of, i, of.attempt + 1, of.tick, of.next)} ELSE {})
  \union {Attempt(of, i, 1, tick, tick + 1) : tick \in of.next..MaxTick}
  \union (IF of.state = "begun" THEN {[of EXCEPT !.state = "lost"]} ELSE {})
  \union (IF of.state # "begun" /\ of.next <= MaxTick THEN {[of EXCEPT !.next = of.next + 1]} ELSE {})

Writes(of, i) ==
  CASE places[i].for = "begin"  -> {Write(of, Checks(i), to) : to \in IF Of = "once" THEN AtKey(of, i) ELSE AtTick(of, i)}
    [] places[i].for = "finish" ->
         IF of.state = "begun" /\ of.token = places[i].of
         THEN {Write(of, Checks(i), [of EXCEPT !.state = outcome]) : outcome \in {"succeeded", "failed"}} ELSE {}
    [] places[i].for = "clean"  -> IF of.old THEN {Write(of, Only("cleans without its place", 0, i), Missing)} ELSE {}

\* It has caught up, and reads what it has written itself, what it may follow, or what refuses it.
Look(i) ==
  /\ stage[i] = "waits" /\ i \in standing /\ (First(i) \/ (places[i].for = "clean" /\ Mistake = "cleans without its place"))
  /\ \E of \in {node} \union older :
       IF of.state = "begun" /\ of.token = i
       THEN Goes(i, "done") /\ begun' = [begun EXCEPT ![i] = of.version] /\ UNCHANGED sent
       ELSE IF Writes(of, i) = {} THEN Goes(i, "over") /\ UNCHANGED <<sent, begun>>
       ELSE Goes(i, "sent") /\ (\E write \in Writes(of, i) : sent' = [sent EXCEPT ![i] = {write}]) /\ UNCHANGED begun
  /\ UNCHANGED <<node, older, places, standing, adrift, counts, puts, kept, last, wrong>>

(* ---- what becomes of a write ---- *)

Fits(w) ==
  /\ w.version = node.version \/ (Mistake = "writes next without its version" /\ Of = "schedule")
  /\ w.place \in standing \union {0}

\* Its effect. A record that is removed and made again begins with the same versions.
Become(w) ==
  /\ node' = IF w.to = Missing THEN Missing ELSE [w.to EXCEPT !.version = node.version + 1]
  /\ older' = IF Mistake = "does not catch up" THEN older \union {node} ELSE {}
  /\ standing' = IF w.gives THEN standing \ {w.place} ELSE standing
  /\ kept' = (kept \/ (Of = "once" /\ w.to.state = "succeeded"))
  /\ wrong' = wrong \union (IF Of = "schedule" /\ w.to.next < node.next THEN {"back"} ELSE {})

Same == UNCHANGED <<node, older, standing, kept, wrong>>

\* It is carried out or refused, and answered.
Carry(i) ==
  \E w \in sent[i] :
    /\ sent' = [sent EXCEPT ![i] = {}] /\ (IF Fits(w) THEN Become(w) ELSE Same)
    /\ LET to == CASE stage[i] # "sent" -> stage[i]
                   [] ~Fits(w) -> "waits"
                   [] places[i].for # "begin" -> "over"
                   [] w.to.state = "begun" /\ w.to.token = i -> "done"
                   [] OTHER -> "waits"
       IN Goes(i, to) /\ begun' = IF to = "done" THEN [begun EXCEPT ![i] = node.version + 1] ELSE begun
    /\ UNCHANGED <<places, adrift, counts, puts, last>>

LoseReply(i) ==
  /\ sent[i] # {} /\ Cardinality(adrift) < MaxAdrift /\ adrift' = adrift \union sent[i] /\ sent' = [sent EXCEPT ![i] = {}]
  /\ Goes(i, IF stage[i] = "sent" THEN "waits" ELSE stage[i])
  /\ UNCHANGED <<node, older, places, standing, counts, begun, puts, kept, last, wrong>>

\* A write that is adrift comes, unless the session has ended that has sent it.
Comes ==
  \E w \in adrift :
    /\ adrift' = adrift \ {w} /\ ((Fits(w) /\ Become(w)) \/ Same)
    /\ UNCHANGED <<places, stage, sent, counts, begun, puts, last>>

(* ---- what a caller is told, and asks for ---- *)

Told(i) == IF stage[i] = "sent" THEN (CHOOSE w \in sent[i] : TRUE).to ELSE node

Tell(i) ==
  /\ stage[i] = "done" \/ (Mistake = "tells before it is recorded" /\ stage[i] = "sent" /\ Told(i).token = i)
  /\ i \in standing /\ Goes(i, "told") /\ counts' = [counts EXCEPT ![i] = TRUE]
  /\ LET is == Told(i)
         again == is.tick = last.tick /\ (is.attempt <= last.attempt \/ is.attempt > MaxAttempts)
     IN /\ last' = [tick |-> is.tick, attempt |-> is.attempt]
        /\ wrong' = wrong \union (IF is.tick < last.tick THEN {"earlier"} ELSE {}) \union (IF again THEN {"again"} ELSE {})
  /\ UNCHANGED <<node, older, places, standing, sent, adrift, begun, puts, kept>>

\* A caller that says what became of its work counts no more. Of a key, the outcome gives up the place, whose hold may be over.
Finish(i) ==
  /\ stage[i] = "told" /\ sent[i] = {} /\ Goes(i, "over") /\ counts' = [counts EXCEPT ![i] = FALSE] /\ begun' = [begun EXCEPT ![i] = 0]
  /\ \E outcome \in {"succeeded", "failed"} :
       LET own == [node EXCEPT !.state = outcome, !.token = i, !.version = begun[i]]
           write == [Write(own, IF Of = "once" THEN i ELSE 0, own) EXCEPT !.gives = (Of = "once")]
       IN IF Of = "once" \/ (node.state = "begun" /\ node.token = i)
          THEN sent' = [sent EXCEPT ![i] = {write}] ELSE UNCHANGED sent
  /\ UNCHANGED <<node, older, places, standing, adrift, puts, kept, last, wrong>>

(* ---- time, and operators ---- *)

Age ==
  /\ Of = "once" /\ node.state \in {"succeeded", "failed"} /\ ~node.old /\ node' = [node EXCEPT !.old = TRUE]
  /\ kept' = FALSE /\ last' = [tick |-> 0, attempt |-> 0]
  /\ UNCHANGED <<older, places, standing, stage, sent, adrift, counts, begun, puts, wrong>>

\* The rule of a schedule changes: its next tick is any one after the last that has begun, whatever the clocks say.
Put ==
  /\ Of = "schedule" /\ puts < MaxPuts /\ puts' = puts + 1
  /\ \E next \in (node.tick + 1)..(MaxTick + 1) : node' = [node EXCEPT !.next = next, !.version = @ + 1]
  /\ UNCHANGED <<older, places, standing, stage, sent, adrift, counts, begun, kept, last, wrong>>

Next ==
  \/ Join("begin", 0) \/ Join("clean", 0) \/ \E i \in Taken : Join("finish", i)
  \/ \E i \in Taken : RunOut(i) \/ Lose(i) \/ Look(i) \/ Carry(i) \/ LoseReply(i) \/ Tell(i) \/ Finish(i)
  \/ Comes \/ Age \/ Put

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* At most one caller counts that was told `begun`.
OneCallerCounts == \A i, j \in Taken : i # j => ~(counts[i] /\ counts[j])
\* While SUCCEEDED is to be kept, no caller counts.
NoneBeginsAfterSuccess == kept => \A i \in Taken : ~counts[i]
\* What was recorded as SUCCEEDED stays so until its keep is over.
SuccessStaysRecorded == kept => node.state = "succeeded"
\* What has begun begins again only as the attempt after it, and only so often.
NothingBeginsAgainButAsARetry == "again" \notin wrong
\* If a lost attempt is not to be repeated, none follows one whose outcome no caller has told.
NothingFollowsALostAttempt == "begun" \in Repeats \/ \A i, j \in Taken : i # j => ~(stage[i] = "told" /\ stage[j] = "told")
\* No tick begins that lies before one that has begun.
NothingEarlierBegins == "earlier" \notin wrong
\* Attempts move the next tick forward only.
TheNextTickMovesForward == "back" \notin wrong

(* ---- what must be reached ---- *)

NothingIsRepeated      == last.attempt < 2
NothingComesLate       == \A w \in adrift : ~(w.version = node.version /\ w.place \notin standing \union {0})
NothingIsMadeAnew      == \A i \in Taken : ~(places[i].for = "clean" /\ stage[i] = "over" /\ node.version > 0)
NothingIsFinishedLater == \A i \in Taken : ~(places[i].for = "finish" /\ stage[i] = "over" /\ kept)
NobodyIsFrozen         == \A i, j \in Taken : ~(i < j /\ stage[i] = "told" /\ counts[j])
NoTickIsMissed         == ~(node.state = "begun" /\ node.attempt = 1 /\ node.tick > last.tick + 1)
==============================================================================
