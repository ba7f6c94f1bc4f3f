----------------------------- MODULE SessionTrace -----------------------------
(* Whether what the running code has believed of a session is no more than what Session.tla says may be believed, and whether the ensemble *)
(* has ended it only when nobody believed in it any more. A trace is what was told, step by step, in microseconds of the sidecar's clock,   *)
(* which begins as the session was asked for. The servers are not told of but for the end: TLC fills in that they have answered. Each trace *)
(* that can be taken to its end is told; the others are refused.                                                                            *)
EXTENDS Session, Traces, TLC

CONSTANT Loud    \* whether each step that is reached is told

VARIABLES trace, \* which
          position,    \* the step that comes next
          phase, \* how far that is
          newest, \* when the newest transaction that counts was answered
          beaten, \* when the newest heartbeat was answered
          standing \* "alive"; "asleep"; "given up", by whoever had the session; "over", as far as the sidecar goes

Told == <<trace, position, phase, newest, beaten, standing>>
Step == Traces[trace][position]
Own1 == CHOOSE s \in Own : TRUE

TraceInit == Init /\ trace \in 1..Len(Traces) /\ position = 1 /\ phase = 1 /\ newest = 0 /\ beaten = 0 /\ standing = "alive"

Servers == <<leader, links, ensemble, deaths, now, lost>>

(* ---- what is not told ---- *)

\* The servers have answered what was sent then.
Answered(s, read) ==
  /\ clock' = Step.answered /\ stage' = [stage EXCEPT ![s][1] = "answered"]
  /\ asks' = [asks EXCEPT ![s][1] = [sent |-> Step.sent, read |-> read, late |-> Step.sent < newest]]
  /\ UNCHANGED <<Servers, at, connection, cut, hand, beats, pair, deadline, attachments>>

Fill(s) ==
  /\ phase' = phase + 1 /\ UNCHANGED <<trace, position, newest, beaten, standing>>
  /\ CASE Step.kind \in {"proved", "read"} /\ phase = 1 -> Answered(s, Step.kind = "read")
       [] Step.kind = "attached" /\ phase = 1 -> clock' = Step.sent /\ UNCHANGED <<Servers, sidecar>>
       [] Step.kind = "attached" /\ phase = 2 -> Attach(s)
       [] Step.kind = "attached" /\ phase = 3 -> Answered(s, FALSE)
       [] OTHER -> FALSE

(* ---- what is told ---- *)

\* Both are whole microseconds, of which each may have lost a part.
Believes(s) == Step.until <= deadline'[s] + 1

Take(s) ==
  CASE Step.kind = "opened" -> Step.sent = 1 /\ UNCHANGED variables /\ Believes(s)
    [] Step.kind = "attached" -> phase = 4 /\ Answer(s, 1) /\ Believes(s)
    [] Step.kind = "proved" -> phase = 2 /\ Answer(s, 1) /\ Believes(s) /\ (Step.heartbeat => Step.sent >= beaten)
    [] Step.kind = "read" -> phase = 2 /\ Answer(s, 1) /\ Believes(s)
    [] Step.kind = "shared" ->
         /\ connection[s] = 1
         /\ deadline' = [deadline EXCEPT ![s] = Later(s, Before(beats[s], Step.before + 2, Step.from))] /\ Believes(s)
         /\ UNCHANGED <<time, leader, links, ensemble, at, connection, cut, stage, asks, hand, beats, pair, attachments, deaths>>
    [] Step.kind \in {"closing", "over", "died"} -> UNCHANGED variables
    [] Step.kind = "slept" -> standing = "alive" /\ UNCHANGED variables
    [] Step.kind = "woken" -> standing = "asleep" /\ Step.clock < deadline[s] /\ Step.until <= deadline[s] + 1 /\ UNCHANGED variables
    [] Step.kind = "ended" ->
         /\ expired' = [expired EXCEPT ![s] = TRUE] /\ clock' = Step.clock
         /\ UNCHANGED <<leader, links, following, touched, expiry, now, lost, sidecar, deaths>>
         /\ standing # "alive" /\ (standing = "given up" \/ NoSessionIsOutlived')
    [] OTHER -> FALSE

Follow(s) ==
  /\ Take(s) /\ position' = position + 1 /\ phase' = 1 /\ UNCHANGED trace
  /\ newest' = CASE Step.kind = "proved" /\ Step.sent >= newest -> Step.answered
                 [] Step.kind = "attached" -> 0
                 [] OTHER -> newest
  /\ beaten' = IF Step.heartbeat THEN Step.answered ELSE beaten
  /\ standing' = CASE standing \notin {"alive", "asleep"} -> standing
                   [] Step.kind = "slept" -> "asleep"
                   [] Step.kind = "woken" -> "alive"
                   [] Step.kind = "closing" -> "given up"
                   [] Step.kind \in {"over", "died"} -> "over"
                   [] OTHER -> standing

TraceNext == position <= Len(Traces[trace]) /\ (Fill(Own1) \/ Follow(Own1))

TraceSpec == TraceInit /\ [][TraceNext]_<<variables, Told>>

Tells == /\ position > Len(Traces[trace]) => PrintT(<<"admitted", trace>>)
         /\ Loud => PrintT(<<"reached", trace, position>>)
==============================================================================
