-------------------------------- MODULE Lock --------------------------------
(* Who may hold a lock, and when its place is given up. A place is an ephemeral node; `log` is the ensemble's order of what was made and *)
(* deleted, and a sidecar sees a beginning of it that only grows. That a session is not ended by the ensemble while anybody is told that *)
(* it is valid is what Session.tla shows, and is taken for granted here. A caller that is frozen takes no step; what it was told is over *)
(* at its time all the same. A caller may ask over several connections, of its hold or of its lease.                                    *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Callers, Readers,   \* all, and those of them that want the lock shared
          Carried,            \* those whose hold is told of on their lease's stream, which goes on when the hold has ended
          MaxLog,             \* how many nodes may be made and deleted
          MaxFailures,        \* how often a creation may not be carried out
          Mistake             \* "none", or the name of one

VARIABLES log,                \* what the ensemble has done: [made |-> BOOLEAN, of |-> caller, place |-> the index at which it was made]
          seen,               \* per caller, how much of the log its sidecar has seen
          asked,              \* "no", "sent": the creation is under way, "lost": its outcome is not known
          place,              \* the place that the sidecar knows to be the caller's; 0 for none
          stream,             \* what the stream says: "none", "waits", "holds", "ending" until the end of a carried hold is handed over, "ended"
          noted,              \* what the sidecar has noted of the answers that count: of the hold, of the lease
          answers,            \* what it has answered and the caller has not read
          counts,             \* what the caller counts on
          checks,             \* whether a check of the caller's is under way
          acknowledged,       \* whether the caller has said that nothing of an ended hold counts
          failures,           \* how often one was not
          tokens              \* per caller, that of its newest grant

variables == <<log, seen, asked, place, stream, noted, answers, counts, checks, acknowledged, failures, tokens>>

About == {"hold", "lease"}
Shared(c) == c \in Readers

Standing(k) == {i \in 1..k : log[i].made} \ {log[j].place : j \in {i \in 1..k : ~log[i].made}}
Before(c, i, k) == {j \in Standing(k) : j < i /\ ~(Shared(c) /\ Shared(log[j].of))}

Init ==
  /\ log = <<>> /\ seen = [c \in Callers |-> 0] /\ asked = [c \in Callers |-> "no"] /\ place = [c \in Callers |-> 0]
  /\ stream = [c \in Callers |-> "none"] /\ noted = [c \in Callers |-> {}] /\ answers = [c \in Callers |-> {}]
  /\ counts = [c \in Callers |-> {}] /\ checks = [c \in Callers |-> {}] /\ acknowledged = [c \in Callers |-> FALSE]
  /\ failures = 0 /\ tokens = [c \in Callers |-> 0]

Make(c) == log' = Append(log, [made |-> TRUE, of |-> c, place |-> Len(log) + 1])
Delete(c, i) == log' = IF i \in Standing(Len(log)) THEN Append(log, [made |-> FALSE, of |-> c, place |-> i]) ELSE log
\* There is room in the log for one more to be made and deleted, besides those that are asked for.
Room == LET owners == {log[i].of : i \in Standing(Len(log))}
            asking == {c \in Callers : asked[c] # "no" /\ c \notin owners}
        IN Len(log) + Cardinality(Standing(Len(log))) + 2 * Cardinality(asking) + 2 <= MaxLog

(* ---- a place in the queue ---- *)

Ask(c) ==
  /\ stream[c] = "none" /\ asked[c] = "no" /\ Room
  /\ stream' = [stream EXCEPT ![c] = "waits"] /\ asked' = [asked EXCEPT ![c] = "sent"]
  /\ acknowledged' = [acknowledged EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<failures, log, seen, place, noted, answers, counts, checks, tokens>>

\* The creation is carried out or not, and the answer arrives or not.
Create(c) ==
  /\ asked[c] = "sent"
  /\ \/ Make(c) /\ asked' = [asked EXCEPT ![c] = "no"] /\ place' = [place EXCEPT ![c] = Len(log) + 1] /\ UNCHANGED failures
     \/ Make(c) /\ asked' = [asked EXCEPT ![c] = "lost"] /\ UNCHANGED <<place, failures>>
     \/ failures < MaxFailures /\ failures' = failures + 1 /\ asked' = [asked EXCEPT ![c] = "lost"] /\ UNCHANGED <<log, place>>
  /\ UNCHANGED <<seen, stream, noted, answers, counts, checks, acknowledged, tokens>>

\* Nothing that was under way is carried out any more: the session has come back over another connection. Names hold a uuid by which a
\* place is found again.
Search(c) ==
  /\ asked[c] = "lost"
  /\ LET M == {i \in Standing(Len(log)) : log[i].of = c} IN
     IF M = {} \/ Mistake = "does not look for its place"
     THEN (M = {} \/ Room) /\ asked' = [asked EXCEPT ![c] = IF stream[c] = "waits" THEN "sent" ELSE "no"] /\ UNCHANGED place
     ELSE asked' = [asked EXCEPT ![c] = "no"] /\ place' = [place EXCEPT ![c] = CHOOSE i \in M : TRUE]
  /\ UNCHANGED <<failures, log, seen, stream, noted, answers, counts, checks, acknowledged, tokens>>

See(c) ==
  /\ seen[c] < Len(log) /\ seen' = [seen EXCEPT ![c] = @ + 1]
  /\ UNCHANGED <<failures, log, asked, place, stream, noted, answers, counts, checks, acknowledged, tokens>>

\* A list that shows the place shows every earlier one that still stood: the reader's, or the one behind the making.
HasItsTurn(c) ==
  /\ stream[c] = "waits" /\ place[c] # 0
  /\ \/ place[c] <= seen[c] /\ place[c] \in Standing(seen[c]) /\ Before(c, place[c], seen[c]) = {}
     \/ Before(c, place[c], place[c]) = {}
     \/ Mistake = "believes a list without its place" /\ Before(c, place[c], seen[c]) = {}
     \/ Mistake = "believes the making alone"

Grant(c) ==
  /\ HasItsTurn(c)
  /\ stream' = [stream EXCEPT ![c] = "holds"] /\ tokens' = [tokens EXCEPT ![c] = place[c]]
  /\ UNCHANGED <<failures, log, seen, asked, place, noted, answers, counts, checks, acknowledged>>

(* ---- what a caller is told ---- *)

\* What is told of a lease counts for a hold until its caller reads that it has ended: on the lease's stream, until that is handed over.
Counts(c, about) == stream[c] = "holds" \/ (stream[c] = "ending" /\ about = "lease")

Check(c, about) ==
  /\ Counts(c, about) /\ about \notin checks[c] /\ checks' = [checks EXCEPT ![c] = @ \union {about}]
  /\ UNCHANGED <<failures, log, seen, asked, place, stream, noted, answers, counts, acknowledged, tokens>>

Answer(c, about) ==
  /\ about \in checks[c] /\ checks' = [checks EXCEPT ![c] = @ \ {about}]
  /\ IF Counts(c, about)
     THEN /\ answers' = [answers EXCEPT ![c] = @ \union {about}]
          /\ noted' = IF \/ (about = "lease" /\ Mistake = "does not note what its lease was told")
                        \/ (stream[c] = "ending" /\ Mistake = "does not note what its lease is told meanwhile")
                     THEN noted ELSE [noted EXCEPT ![c] = @ \union {about}]
          /\ UNCHANGED acknowledged
     ELSE /\ acknowledged' = IF Mistake = "a check acknowledges" /\ stream[c] = "ended" THEN [acknowledged EXCEPT ![c] = TRUE] ELSE acknowledged
          /\ UNCHANGED <<answers, noted>>
  /\ UNCHANGED <<failures, log, seen, asked, place, stream, counts, tokens>>

Read(c, about) ==
  /\ about \in answers[c] /\ answers' = [answers EXCEPT ![c] = @ \ {about}] /\ counts' = [counts EXCEPT ![c] = @ \union {about}]
  /\ UNCHANGED <<failures, log, seen, asked, place, stream, noted, checks, acknowledged, tokens>>

\* The time that a caller was told is over, by its own clock no later than by the sidecar's.
Expires(c) ==
  /\ counts[c] \union answers[c] \union noted[c] # {}
  /\ noted' = [noted EXCEPT ![c] = {}] /\ answers' = [answers EXCEPT ![c] = {}] /\ counts' = [counts EXCEPT ![c] = {}]
  /\ UNCHANGED <<failures, log, seen, asked, place, stream, checks, acknowledged, tokens>>

(* ---- how a hold ends ---- *)

\* By its caller's own hand: it counts on nothing from when it says so.
Release(c) ==
  /\ stream[c] = "holds" /\ stream' = [stream EXCEPT ![c] = "ended"] /\ acknowledged' = [acknowledged EXCEPT ![c] = TRUE]
  /\ counts' = [counts EXCEPT ![c] = {}] /\ answers' = [answers EXCEPT ![c] = {}]
  /\ UNCHANGED <<failures, log, seen, asked, place, noted, checks, tokens>>

\* Otherwise: it is broken or revoked, its lease is closed elsewhere, its sidecar stops. So does a place that waits.
Force(c) ==
  /\ stream[c] \in {"waits", "holds"} /\ stream' = [stream EXCEPT ![c] = "ended"]
  /\ acknowledged' = [acknowledged EXCEPT ![c] = stream[c] = "waits"]
  /\ UNCHANGED <<failures, log, seen, asked, place, noted, answers, counts, checks, tokens>>

\* The same, of a hold that is told of on its lease's stream: its caller is still to be told.
Fade(c) ==
  /\ stream[c] = "holds" /\ stream' = [stream EXCEPT ![c] = "ending"] /\ acknowledged' = [acknowledged EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<failures, log, seen, asked, place, noted, answers, counts, checks, tokens>>

\* That is handed to the transport, or nobody reads the stream any more.
Hand(c) ==
  /\ stream[c] = "ending" /\ stream' = [stream EXCEPT ![c] = "ended"]
  /\ UNCHANGED <<failures, log, seen, asked, place, noted, answers, counts, checks, acknowledged, tokens>>

\* The caller reads the end, and acknowledges it; or it gives the hold up as that ends, and does not need to be told.
Hear(c) ==
  /\ stream[c] \in {"ending", "ended"} /\ ~acknowledged[c] /\ acknowledged' = [acknowledged EXCEPT ![c] = TRUE]
  /\ counts' = [counts EXCEPT ![c] = {}] /\ answers' = [answers EXCEPT ![c] = {}] /\ stream' = [stream EXCEPT ![c] = "ended"]
  /\ UNCHANGED <<failures, log, seen, asked, place, noted, checks, tokens>>

GiveUp(c) ==
  /\ stream[c] = "ended" /\ asked[c] = "no" /\ checks[c] = {}
  /\ acknowledged[c] \/ noted[c] = {} \/ Mistake = "does not wait for who was told"
  /\ IF place[c] = 0 THEN UNCHANGED log ELSE Delete(c, place[c])
  /\ stream' = [stream EXCEPT ![c] = "none"] /\ place' = [place EXCEPT ![c] = 0] /\ noted' = [noted EXCEPT ![c] = {}]
  /\ UNCHANGED <<failures, seen, asked, answers, counts, checks, acknowledged, tokens>>

\* A mistake: the place goes first.
GiveUpUntold(c) ==
  /\ Mistake = "gives up before the end is handed over" /\ stream[c] = "ending" /\ place[c] # 0 /\ noted[c] = {}
  /\ Delete(c, place[c]) /\ place' = [place EXCEPT ![c] = 0]
  /\ UNCHANGED <<failures, seen, asked, stream, noted, answers, counts, checks, acknowledged, tokens>>

\* The sidecar dies or loses contact: its session ends when all that was told is over, and takes along what it owned.
Lose(c) ==
  /\ stream[c] # "none" /\ asked[c] # "sent"
  /\ noted[c] = {} \/ Mistake = "a session ends before what was told"
  /\ LET M == {i \in Standing(Len(log)) : log[i].of = c} IN
     IF M = {} THEN UNCHANGED log ELSE Delete(c, CHOOSE i \in M : TRUE)
  /\ IF Cardinality({i \in Standing(Len(log)) : log[i].of = c}) > 1
     THEN UNCHANGED <<asked, place, stream, checks, answers, acknowledged>>
     ELSE /\ asked' = [asked EXCEPT ![c] = "no"] /\ place' = [place EXCEPT ![c] = 0] /\ stream' = [stream EXCEPT ![c] = "none"]
          /\ checks' = [checks EXCEPT ![c] = {}] /\ answers' = [answers EXCEPT ![c] = {}] /\ acknowledged' = [acknowledged EXCEPT ![c] = FALSE]
  /\ UNCHANGED <<failures, seen, noted, counts, tokens>>

Acts(c) ==
  \/ Ask(c) \/ Create(c) \/ Search(c) \/ See(c) \/ Grant(c) \/ Expires(c) \/ Release(c) \/ Hear(c) \/ GiveUp(c) \/ Lose(c)
  \/ (c \notin Carried \/ stream[c] = "waits") /\ Force(c)
  \/ c \in Carried /\ (Fade(c) \/ Hand(c) \/ GiveUpUntold(c))
  \/ \E about \in About : Check(c, about) \/ Answer(c, about) \/ Read(c, about)

Next == \E c \in Callers : Acts(c)

Fair == \A c \in Callers :
  /\ WF_variables(Create(c)) /\ WF_variables(Search(c)) /\ WF_variables(See(c)) /\ WF_variables(Grant(c)) /\ WF_variables(Expires(c))
  /\ WF_variables(GiveUp(c)) /\ WF_variables(Hand(c)) /\ \A about \in About : WF_variables(Answer(c, about))

Spec == Init /\ [][Next]_variables
FairSpec == Spec /\ Fair

(* ---- what is promised ---- *)

Excludes(a, b) == a # b /\ ~(Shared(a) /\ Shared(b))

\* At most one caller that counts what it was told is sure of an exclusive lock.
OneCallerIsSure == \A a, b \in Callers : Excludes(a, b) => counts[a] = {} \/ counts[b] = {}
\* At most one stream says that it is held, and nobody counts on another's hold while one does.
Says(c) == stream[c] \in {"holds", "ending"}
OneStreamHolds == \A a, b \in Callers : Excludes(a, b) => ~(Says(a) /\ (Says(b) \/ counts[b] # {}))
\* Each grant's token is larger than those of all that stood before it and that it excludes.
TokensGrow == [][\A a, b \in Callers : Excludes(a, b) /\ tokens'[a] # tokens[a] /\ tokens[b] # 0 /\ stream[b] # "holds" => tokens'[a] > tokens[b]]_variables
\* What is given up goes: whoever waits gets it, or gives up.
GivenUpPlacesGo == \A c \in Callers : stream[c] \in {"ending", "ended"} ~> stream[c] = "none"
NobodyWaitsForNobody == \A c \in Callers : stream[c] = "waits" ~> stream[c] # "waits" \/ \E b \in Callers : b # c /\ stream[b] = "holds"

(* ---- what must be reached ---- *)

NothingIsGranted  == \A c \in Callers : tokens[c] = 0
NobodyFollows     == \A a, b \in Callers : Excludes(a, b) => tokens[a] = 0 \/ tokens[b] = 0
NobodyCounts      == \A c \in Callers : counts[c] = {}
NobodyIsWaitedFor == \A c \in Callers : ~(stream[c] = "ended" /\ noted[c] # {} /\ ~acknowledged[c])
NothingIsFound    == \A c \in Callers : ~(asked[c] = "lost" /\ \E i \in Standing(Len(log)) : log[i].of = c)
NobodyIsToldLater == \A c \in Callers : ~(stream[c] = "ending" /\ counts[c] # {} /\ noted[c] # {})
NobodyShares      == \A a, b \in Readers : a = b \/ stream[a] # "holds" \/ stream[b] # "holds"
==============================================================================
