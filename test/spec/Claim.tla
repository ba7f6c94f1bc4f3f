-------------------------------- MODULE Claim -------------------------------
(* Locks that are held without a process. A claim is a place in the queue of Lock.tla that belongs to no session, and a record that says     *)
(* until when the claim stands. Each write of the record is one transaction with its place and names the version that was read. A write may  *)
(* be carried out late, or its answer be lost: another one is then sent beside it. Claims end by clocks, of which one may be wrong. That an  *)
(* operator breaks no claim while its caller counts on it is what Mark.tla shows, and is taken for granted here. All else is as in Lock.tla.  *)
EXTENDS Lock, Integers

CONSTANTS Lasting,            \* callers whose places belong to no session
          Span,               \* for how long a claim stands from when its record was written
          Tolerance,          \* for how long the end of a claim must be over by both clocks
          Errors,             \* by how much a clock that is right may be ahead
          Wrong,              \* sets of clocks; those of one of the sets show any time
          MaxTime,
          MaxVersion,         \* how often a record is written before its end
          MaxSent             \* how many writes are under way at a time

VARIABLES now,                \* the time
          wrong,              \* the clocks that show any time
          record,             \* per claim: its version, when it ends, and whether it says that it is held
          until,              \* when what its caller counts on is over
          sent,               \* writes that are under way, or were never carried out
          early               \* whether a claim has ended before its record's end without its caller's release

claims == <<now, wrong, record, until, sent, early>>

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Far == MaxTime + Span + Tolerance + 1

\* The clocks are those of the ensemble, of the sidecar that a caller asks, and of the one that ends claims.
Readings(clock) == IF clock \in wrong THEN {0, Far} ELSE {now + e : e \in Errors}

ClaimInit ==
  /\ Init /\ now = 0 /\ wrong \in Wrong /\ early = FALSE /\ until = [c \in Lasting |-> 0] /\ sent = [c \in Lasting |-> {}]
  /\ record = [c \in Lasting |-> [version |-> 0, end |-> 0, held |-> FALSE]]

\* A claim is made with its place, in a name by which it is found again.
Enter(c) ==
  /\ \/ Ask(c) \/ Create(c) \/ Search(c)
     \/ (stream[c] = "waits" \/ Mistake = "answers from a reader that lags") /\ See(c) \* what is seen later changes nothing otherwise
  /\ record' = IF stream[c] = "none" THEN [record EXCEPT ![c] = [version |-> 0, end |-> 0, held |-> FALSE]] ELSE record
  /\ UNCHANGED <<now, wrong, until, sent, early>>

(* ---- writes of the record ---- *)

Send(c, kind, said) ==
  /\ Cardinality(sent[c]) < MaxSent
  /\ sent' = [sent EXCEPT ![c] = @ \union {[kind |-> kind, said |-> said, version |-> record[c].version, place |-> place[c]]}]
  /\ UNCHANGED <<now, wrong, record, early>>

SendGrant(c)  == HasItsTurn(c) /\ (\E said \in Readings("asked") : Send(c, "grant", said)) /\ UNCHANGED <<variables, until>>
SendExtend(c) == stream[c] = "holds" /\ record[c].version < MaxVersion /\ (\E said \in Readings("asked") : Send(c, "extend", said)) /\ UNCHANGED <<variables, until>>

\* The caller counts on nothing from when it asks for the release.
SendRelease(c) ==
  /\ stream[c] \in {"waits", "holds"} /\ place[c] # 0 /\ counts' = [counts EXCEPT ![c] = {}] /\ until' = [until EXCEPT ![c] = 0]
  /\ Send(c, "release", 0)
  /\ UNCHANGED <<log, seen, asked, place, stream, noted, answers, checks, acknowledged, failures, tokens>>

\* Any sidecar ends a claim whose time is over by both clocks.
SendEnd(c) ==
  /\ stream[c] = "holds" /\ Send(c, "end", 0) /\ UNCHANGED <<variables, until>>
  /\ \E e \in Readings("ensemble"), s \in Readings("sweeper") :
       /\ e > record[c].end + Tolerance \/ Mistake = "ends a claim by its own clock"
       /\ s > record[c].end + Tolerance \/ Mistake = "ends a claim by the ensemble's clock"

\* No extension shortens a claim.
Hold(c, said, version) ==
  \E written \in Readings("ensemble") :
    record' = [record EXCEPT ![c] = [version |-> version, end |-> Max(@.end, Min(Far, Max(written, said) + Span)), held |-> TRUE]]

\* The ensemble carries a write out, if it still finds what was read. An answer that arrives is as good as a later one of Check.
Carry(c, m) ==
  /\ m \in sent[c] /\ sent' = [sent EXCEPT ![c] = @ \ {m}]
  /\ LET stands == m.place = place[c] /\ place[c] \in Standing(Len(log))
         newest == m.version = record[c].version \/ (m.kind = "end" /\ Mistake = "ends whichever version")
     IN CASE ~(stands /\ newest) -> UNCHANGED <<variables, record, early>>
          [] m.kind = "grant" ->
               /\ stream' = [stream EXCEPT ![c] = "holds"] /\ tokens' = [tokens EXCEPT ![c] = m.place]
               /\ Hold(c, m.said, m.version + 1)
               /\ UNCHANGED <<log, seen, asked, place, noted, answers, counts, checks, acknowledged, failures, early>>
          [] m.kind = "extend" -> Hold(c, m.said, m.version + 1) /\ UNCHANGED <<variables, early>>
          [] OTHER ->
               /\ Delete(c, m.place) /\ stream' = [stream EXCEPT ![c] = "ended"]
               /\ record' = [record EXCEPT ![c].version = @ + 1, ![c].held = FALSE]
               /\ early' = (early \/ (m.kind = "end" /\ now <= record[c].end))
               /\ UNCHANGED <<seen, asked, place, noted, answers, counts, checks, acknowledged, failures, tokens>>
  /\ UNCHANGED <<now, wrong, until>>

(* ---- what a caller counts on ---- *)

\* The caller asks how its claim stands, unless it has asked for the release. It counts from then on, by a clock of its own, which shows no dates.
Ascertain(c) ==
  /\ \/ stream[c] = "holds"
     \/ Mistake = "answers from a reader that lags" /\ stream[c] = "ended" /\ place[c] \in Standing(seen[c])
  /\ \A m \in sent[c] : m.kind # "release" \/ m.place # place[c]
  /\ \E e \in Readings("ensemble"), s \in Readings("asked") :
       /\ record[c].end > Max(e, s)
       /\ until' = [until EXCEPT ![c] = Max(@, Min(Far, now + record[c].end - Max(e, s)))]
  /\ counts' = [counts EXCEPT ![c] = {"claim"}]
  /\ UNCHANGED <<log, seen, asked, place, stream, noted, answers, checks, acknowledged, failures, tokens, now, wrong, record, sent, early>>

Pass ==
  /\ now < MaxTime /\ now' = now + 1
  /\ counts' = [c \in Callers |-> IF c \in Lasting /\ until[c] <= now' THEN {} ELSE counts[c]]
  /\ until' = [c \in Lasting |-> IF until[c] <= now' THEN 0 ELSE until[c]]
  /\ UNCHANGED <<log, seen, asked, place, stream, noted, answers, checks, acknowledged, failures, tokens, wrong, record, sent, early>>

(* ---- how else a claim ends ---- *)

\* An operator has broken it, and waited until its caller counts on nothing; or another program has deleted its place.
Break(c) ==
  /\ stream[c] \in {"waits", "holds"} /\ place[c] \in Standing(Len(log)) /\ counts[c] = {} /\ Delete(c, place[c])
  /\ stream' = [stream EXCEPT ![c] = "ended"]
  /\ UNCHANGED <<seen, asked, place, noted, answers, counts, checks, acknowledged, failures, tokens, claims>>

\* A mistake: a claim whose place is gone gets another one.
MakeAnew(c) ==
  /\ Mistake = "makes its place anew" /\ stream[c] = "ended" /\ record[c].held /\ Room
  /\ Make(c) /\ place' = [place EXCEPT ![c] = Len(log) + 1] /\ stream' = [stream EXCEPT ![c] = "holds"]
  /\ UNCHANGED <<seen, asked, noted, answers, counts, checks, acknowledged, failures, tokens, claims>>

\* The caller claims anew, with another id. What is carried out later meets neither the record nor the place.
Forget(c) ==
  /\ stream[c] = "ended" /\ counts[c] = {}
  /\ stream' = [stream EXCEPT ![c] = "none"] /\ place' = [place EXCEPT ![c] = 0] /\ sent' = [sent EXCEPT ![c] = {}]
  /\ UNCHANGED <<log, seen, asked, noted, answers, counts, checks, acknowledged, failures, tokens, now, wrong, record, until, early>>

ClaimNext ==
  \/ \E c \in Callers \ Lasting : Acts(c) /\ UNCHANGED claims
  \/ \E c \in Lasting :
       \/ Enter(c) \/ SendGrant(c) \/ SendExtend(c) \/ SendRelease(c) \/ SendEnd(c) \/ Ascertain(c)
       \/ Break(c) \/ MakeAnew(c) \/ Forget(c) \/ \E m \in sent[c] : Carry(c, m)
  \/ Pass

ClaimSpec == ClaimInit /\ [][ClaimNext]_<<variables, claims>>

(* ---- what is promised ---- *)

\* A claim ends after the time that its record says, unless its caller releases it or an operator breaks it.
NoClaimEndsEarly == ~early
\* A claim's place stands while its caller counts on it.
CountedClaimsStand == \A c \in Lasting : counts[c] # {} => stream[c] = "holds" /\ place[c] \in Standing(Len(log))

(* ---- what must be reached ---- *)

NobodyCountsOnAClaim == \A c \in Lasting : counts[c] = {}
NothingIsPutOff      == \A c \in Lasting : record[c].version < 2 \/ stream[c] # "holds"
NoClaimRunsOut       == \A c \in Lasting : ~(stream[c] = "ended" /\ now > record[c].end /\ record[c].end > 0 /\ ~record[c].held)
NoWriteOfAClaimIsLate == \A c \in Lasting : \A m \in sent[c] : m.version = record[c].version
NobodyFollowsAClaim  == \A c \in Lasting, b \in Callers \ Lasting : tokens[c] = 0 \/ tokens[b] <= tokens[c]
NoClaimFollows       == \A c \in Lasting, b \in Callers \ Lasting : tokens[b] = 0 \/ tokens[c] <= tokens[b]
==============================================================================
