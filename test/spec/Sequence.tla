------------------------------ MODULE Sequence ------------------------------
(* Numbers that are handed out once. A node holds the last number; its versions grow with each write and begin anew when it is deleted and *)
(* made again, so that each write also checks a guard, whose name no other incarnation has. A sidecar reads through a reader that may be   *)
(* late, and a reply may be lost: then it is not known whether the number was taken, and nobody gets it.                                    *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Sidecars,
          Block,              \* how many numbers a write takes; all but the first are kept for later callers
          MaxWrites,          \* how many writes may be carried out
          MaxIncarnations,    \* how often the node may be made
          Mistake             \* "none", or the name of one

VARIABLES node,               \* what the ensemble holds: the incarnation, the version, the last number
          history,            \* all that it has held, in order
          seen,               \* per sidecar, how much of that its reader has shown
          known,              \* what it goes on from; 0 for nothing
          request,            \* "no", "sent", "done", "refused"
          kept,               \* numbers that it has not handed out yet
          given,              \* numbers that were handed out, each with its incarnation
          highest,            \* per sidecar, the highest number that was handed out when its request began
          twice, backwards    \* whether a number was handed out twice, and one that is not above those handed out before it was asked for

variables == <<node, history, seen, known, request, kept, given, highest, twice, backwards>>

Nothing == [of |-> 0, version |-> 0, last |-> 0]

Init ==
  /\ node = [of |-> 1, version |-> 0, last |-> 0] /\ history = <<node>> /\ seen = [s \in Sidecars |-> 1]
  /\ known = [s \in Sidecars |-> Nothing] /\ request = [s \in Sidecars |-> "no"] /\ kept = [s \in Sidecars |-> {}]
  /\ given = {} /\ highest = [s \in Sidecars |-> 0] /\ twice = FALSE /\ backwards = FALSE

Becomes(n) == node' = n /\ history' = Append(history, n)
Writes == Cardinality({i \in 1..Len(history) : history[i].version > 0})
Highest(of) == LET numbers == {g[2] : g \in {g \in given : g[1] = of}} IN IF numbers = {} THEN 0 ELSE CHOOSE n \in numbers : \A m \in numbers : m <= n

See(s) ==
  /\ seen[s] < Len(history) /\ seen' = [seen EXCEPT ![s] = @ + 1]
  /\ UNCHANGED <<node, history, known, request, kept, given, highest, twice, backwards>>

Look(s) ==
  /\ request[s] = "no" /\ known[s] = Nothing /\ known' = [known EXCEPT ![s] = history[seen[s]]]
  /\ UNCHANGED <<node, history, seen, request, kept, given, highest, twice, backwards>>

Ask(s) ==
  /\ request[s] = "no" /\ known[s].of # 0 /\ request' = [request EXCEPT ![s] = "sent"]
  /\ highest' = [highest EXCEPT ![s] = Highest(known[s].of)]
  /\ UNCHANGED <<node, history, seen, known, kept, given, twice, backwards>>

\* The ensemble carries a write out, or refuses it.
Write(s) ==
  /\ request[s] = "sent" /\ Writes < MaxWrites
  /\ LET fits == /\ node.of # 0
                 /\ node.of = known[s].of \/ Mistake = "checks no guard"
                 /\ node.version = known[s].version \/ Mistake = "checks no version"
     IN IF fits
        THEN /\ Becomes([of |-> node.of, version |-> node.version + 1, last |-> known[s].last + Block])
             /\ request' = [request EXCEPT ![s] = "done"]
        ELSE request' = [request EXCEPT ![s] = "refused"] /\ UNCHANGED <<node, history>>
  /\ UNCHANGED <<seen, known, kept, given, highest, twice, backwards>>

Give(s, numbers) ==
  /\ given' = given \union numbers
  /\ twice' = (twice \/ numbers \intersect given # {})

\* It is told that the numbers are its own.
Take(s) ==
  /\ request[s] = "done" \/ (Mistake = "takes a lost reply for a success" /\ request[s] = "refused")
  /\ LET first == known[s].last + 1 IN
     /\ Give(s, {<<known[s].of, first>>})
     /\ backwards' = (backwards \/ first <= highest[s])
     /\ kept' = [kept EXCEPT ![s] = @ \union {<<known[s].of, n>> : n \in (first + 1)..(known[s].last + Block)}]
  /\ known' = [known EXCEPT ![s] = [of |-> @.of, version |-> @.version + 1, last |-> @.last + Block]]
  /\ request' = [request EXCEPT ![s] = "no"]
  /\ UNCHANGED <<node, history, seen, highest>>

\* It is told that somebody was faster, or the reply is lost: it goes on from what the reader shows.
Forget(s) ==
  /\ request[s] \in {"done", "refused"} /\ request' = [request EXCEPT ![s] = "no"] /\ known' = [known EXCEPT ![s] = Nothing]
  /\ UNCHANGED <<node, history, seen, kept, given, highest, twice, backwards>>

\* A number that was kept goes to a caller that does not mind the order.
GiveKept(s) ==
  /\ \E number \in kept[s] :
       /\ Give(s, {number})
       /\ kept' = [kept EXCEPT ![s] = IF Mistake = "keeps what it has handed out" THEN @ ELSE @ \ {number}]
  /\ UNCHANGED <<node, history, seen, known, request, highest, backwards>>

\* A sidecar that starts again knows nothing; a request of its that is under way may still be carried out, which takes numbers that nobody gets.
Restart(s) ==
  /\ known[s] # Nothing /\ request[s] # "sent"
  /\ request' = [request EXCEPT ![s] = "no"] /\ known' = [known EXCEPT ![s] = Nothing] /\ kept' = [kept EXCEPT ![s] = {}]
  /\ UNCHANGED <<node, history, seen, given, highest, twice, backwards>>

Remove ==
  /\ node.of # 0 /\ node.of < MaxIncarnations /\ Becomes([of |-> 0, version |-> node.of, last |-> 0])
  /\ UNCHANGED <<seen, known, request, kept, given, highest, twice, backwards>>

MakeAnew ==
  /\ node.of = 0 /\ Becomes([of |-> node.version + 1, version |-> 0, last |-> 0])
  /\ UNCHANGED <<seen, known, request, kept, given, highest, twice, backwards>>

Next ==
  \/ Remove \/ MakeAnew
  \/ \E s \in Sidecars : See(s) \/ Look(s) \/ Ask(s) \/ Write(s) \/ Take(s) \/ Forget(s) \/ GiveKept(s) \/ Restart(s)

Spec == Init /\ [][Next]_variables

(* ---- what is promised ---- *)

\* Of one incarnation of a sequence, each number is handed out once.
EachNumberOnce == ~twice
\* A number is larger than each that was handed out before it was asked for.
NumbersGrow == ~backwards

(* ---- what must be reached ---- *)

NothingIsGiven     == Cardinality(given) < 2
NothingIsRefused   == \A s \in Sidecars : request[s] # "refused"
NothingIsMadeAnew  == \A g \in given : g[1] = 1
NothingIsKept      == \A s \in Sidecars : kept[s] = {}
==============================================================================
