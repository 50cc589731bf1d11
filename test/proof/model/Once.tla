-------------------------------- MODULE Once --------------------------------
(***************************************************************************)
(* How a relay asks the destination before it sends again: relay/recall.go *)
(* and relay/internal/doubt, what the ledger keeps for the next owner      *)
(* (Mark.Sent of package feeds), and the fence of a destination            *)
(* (broker.Recaller).                                                      *)
(*                                                                         *)
(* The shard has one key and one name. A lease may expire while its holder *)
(* stands still: then the holder goes on later where it was, and does not  *)
(* look at its clock. What a relay has sent may be stored at any time      *)
(* later, also when the relay is gone, unless the destination refuses it.  *)
(*                                                                         *)
(* A time is the number of calls that had begun, and of those that were    *)
(* stored. A term is a pair: the number of the owner, and of its           *)
(* questions.                                                              *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Relays,     \* a set of numbers
  Messages,   \* how many there are, numbered from 1
  Takes,      \* how often the shard is taken
  Faults,     \* the number of faults
  Variant     \* "right", or a way to do it wrong

(* What is done with this specification; see doc.go.
check   faults    68106
nightly messages  244202   [Messages=3]
nightly takes     1602257  [Takes=4 Faults=3]
revert  NoFence           NoDuplicate     what a former owner has under way is stored after the question
revert  FenceAfterRead    NoDuplicate     the destination is read before the former owner is fenced
revert  OwnCallsPass      NoDuplicate     a question does not fence the calls of the same owner that had no answer
revert  NoRecall          NoDuplicate     what the destination has stored is not looked up
revert  CountsUnderWay    NothingSkipped  what is under way counts as arrived, and is then refused
revert  SettlementForgets NoDuplicate     a settlement ends the doubts that its owner still has
revert  CallForgotten     NoDuplicate     a settlement says that nothing has begun while a call is under way
revert  ReleaseForgets    NoDuplicate     a release says that all is known while the owner still has doubts
revert  TakenAsSettled    NoDuplicate     the ledger says nothing about calls between a take-over and the first settlement
revert  ClosedEarly       NoDuplicate     doubts end before all is passed that a former owner can have sent
probe   Recalled   a message that a former owner has sent counts as confirmed
probe   Refused    the destination refuses a message that an owner before has under way
probe   Zombie     two relays believe that they own the shard, and both have a call under way
probe   Again      an owner dies in doubt, and the next one has to ask about the one before
*)

VARIABLES
  ledger,     \* the newest row: holder and number of the owner, position, and since when something may have been sent beyond it
  relay,      \* by name: the state of a relay
  calls,      \* calls under way, each with one message
  fence,      \* of the destination: the highest term that has asked
  stored,     \* by message: when it was stored; Never if it was not
  now,        \* the time
  takes,      \* the number of remaining take-overs
  faults,     \* the number of remaining faults
  repeated    \* whether anything was stored twice

vars == <<ledger, relay, calls, fence, stored, now, takes, faults, repeated>>

Never == 1000
Min(a, b) == IF a < b THEN a ELSE b
Term(owner, question) == owner * 100 + question

Out == [in |-> FALSE, owner |-> 0, question |-> 0, conf |-> 0, doubt |-> Never, fenced |-> FALSE, asked |-> FALSE, known |-> {}]

Fault == faults > 0 /\ faults' = faults - 1

Own(r) == {c \in calls : c.by = r /\ c.owner = relay[r].owner /\ ~c.lost}

(* What remains of the calls of a relay that ends, or gives up on them. *)
Lost(r) == (calls \ Own(r)) \cup {[c EXCEPT !.lost = TRUE] : c \in {k \in Own(r) : ~k.done}}

Holds(r) == relay[r].in /\ ledger.holder = r /\ ledger.owner = relay[r].owner

-----------------------------------------------------------------------------
(* Owners *)

(* Taking the shard of a relay that is alive needs a lease that has expired: that is a fault. *)
Take(r) ==
  /\ ~relay[r].in
  /\ takes > 0
  /\ takes' = takes - 1
  /\ IF ledger.holder \in Relays /\ relay[ledger.holder].in THEN Fault ELSE UNCHANGED faults
  /\ ledger' = [ledger EXCEPT !.holder = r, !.owner = @ + 1, !.since = IF Variant = "TakenAsSettled" THEN @ ELSE Min(@, now)]
  /\ relay' = [relay EXCEPT ![r] = [Out EXCEPT !.in = TRUE, !.owner = ledger.owner + 1, !.conf = ledger.pos, !.doubt = ledger.since]]
  /\ UNCHANGED <<calls, fence, stored, now, repeated>>

Oldest(r) == IF Own(r) = {} \/ Variant = "CallForgotten" THEN now ELSE (CHOOSE c \in Own(r) : TRUE).began

Settle(r) ==
  /\ relay[r].in
  /\ IF Holds(r)
     THEN /\ ledger' = [ledger EXCEPT !.pos = relay[r].conf,
                          !.since = IF Variant = "SettlementForgets" THEN Oldest(r) ELSE Min(relay[r].doubt, Oldest(r))]
          /\ UNCHANGED <<relay, calls>>
     ELSE /\ relay' = [relay EXCEPT ![r] = Out]
          /\ calls' = Lost(r)
          /\ UNCHANGED ledger
  /\ UNCHANGED <<fence, stored, now, takes, faults, repeated>>

Release(r) ==
  /\ Holds(r)
  /\ Own(r) = {}
  /\ ledger' = [ledger EXCEPT !.holder = 0, !.pos = relay[r].conf, !.since = IF Variant = "ReleaseForgets" THEN Never ELSE relay[r].doubt]
  /\ relay' = [relay EXCEPT ![r] = Out]
  /\ UNCHANGED <<calls, fence, stored, now, takes, faults, repeated>>

Kill(r) ==
  /\ Fault
  /\ relay[r].in
  /\ relay' = [relay EXCEPT ![r] = Out]
  /\ calls' = Lost(r)
  /\ UNCHANGED <<ledger, fence, stored, now, takes, repeated>>

-----------------------------------------------------------------------------
(* Asking *)

(* The fence is raised to a new term, so that it stops the owner's own lost calls too. *)
Fence(r) ==
  /\ relay[r].in
  /\ relay[r].doubt # Never
  /\ ~relay[r].fenced
  /\ relay[r].asked => Variant = "FenceAfterRead"
  /\ LET question == IF Variant = "OwnCallsPass" THEN relay[r].question ELSE relay[r].question + 1
         term == Term(relay[r].owner, question)
     IN IF fence > term
        THEN /\ relay' = [relay EXCEPT ![r] = Out]
             /\ calls' = Lost(r)
             /\ UNCHANGED fence
        ELSE /\ relay' = [relay EXCEPT ![r] = [@ EXCEPT !.question = question, !.fenced = TRUE]]
             /\ fence' = IF Variant = "NoFence" THEN fence ELSE term
             /\ UNCHANGED calls
  /\ UNCHANGED <<ledger, stored, now, takes, faults, repeated>>

Read(r) ==
  /\ relay[r].in
  /\ relay[r].doubt # Never
  /\ ~relay[r].asked
  /\ relay[r].fenced \/ Variant = "FenceAfterRead"
  /\ LET there == {m \in 1..Messages : stored[m] # Never /\ stored[m] >= relay[r].doubt}
         known == IF Variant = "NoRecall" THEN {}
                  ELSE IF Variant = "CountsUnderWay" THEN there \cup {c.message : c \in calls}
                  ELSE there
     IN relay' = [relay EXCEPT ![r] = [@ EXCEPT !.asked = TRUE, !.known = @ \cup known]]
  /\ UNCHANGED <<ledger, calls, fence, stored, now, takes, faults, repeated>>

(* All is passed that a former owner can have sent: here, the whole log. *)
Close(r) ==
  /\ relay[r].in
  /\ relay[r].doubt # Never
  /\ relay[r].fenced /\ relay[r].asked
  /\ Own(r) = {}
  /\ relay[r].conf = Messages \/ (Variant = "ClosedEarly" /\ relay[r].conf > ledger.pos)
  /\ relay' = [relay EXCEPT ![r] = [@ EXCEPT !.doubt = Never, !.known = {}, !.fenced = FALSE, !.asked = FALSE]]
  /\ UNCHANGED <<ledger, calls, fence, stored, now, takes, faults, repeated>>

-----------------------------------------------------------------------------
(* Sending *)

Following(r) == relay[r].conf + 1

Begin(r) ==
  /\ relay[r].in
  /\ Own(r) = {}
  /\ Following(r) <= Messages
  /\ relay[r].doubt # Never => relay[r].fenced /\ relay[r].asked
  /\ IF Following(r) \in relay[r].known
     THEN /\ relay' = [relay EXCEPT ![r] = [@ EXCEPT !.conf = @ + 1]]
          /\ UNCHANGED <<calls, now>>
     ELSE /\ calls' = calls \cup {[by |-> r, owner |-> relay[r].owner, term |-> Term(relay[r].owner, relay[r].question),
                                   message |-> Following(r), began |-> now, done |-> FALSE, lost |-> FALSE]}
          /\ now' = now + 1
          /\ UNCHANGED relay
  /\ UNCHANGED <<ledger, fence, stored, takes, faults, repeated>>

Store(c) ==
  /\ ~c.done
  /\ c.term >= fence
  /\ stored' = [stored EXCEPT ![c.message] = Min(@, now)]
  /\ repeated' = (repeated \/ stored[c.message] # Never)
  /\ calls' = (calls \ {c}) \cup (IF c.lost THEN {} ELSE {[c EXCEPT !.done = TRUE]})
  /\ now' = now + 1
  /\ UNCHANGED <<ledger, relay, fence, takes, faults>>

(* An owner whose call is refused knows that there is another. *)
Refuse(c) ==
  /\ ~c.done
  /\ c.term < fence
  /\ calls' = calls \ {c}
  /\ relay' = IF c \in Own(c.by) THEN [relay EXCEPT ![c.by] = Out] ELSE relay
  /\ UNCHANGED <<ledger, fence, stored, now, takes, faults, repeated>>

Confirm(r) ==
  /\ \E c \in Own(r) :
       /\ c.done
       /\ relay' = [relay EXCEPT ![r] = [@ EXCEPT !.conf = c.message]]
       /\ calls' = calls \ {c}
  /\ UNCHANGED <<ledger, fence, stored, now, takes, faults, repeated>>

(* No answer comes. The owner asks before it sends the message again. *)
LoseAnswer(r) ==
  /\ Fault
  /\ \E c \in Own(r) :
       relay' = [relay EXCEPT ![r] = [@ EXCEPT !.doubt = Min(@, c.began), !.fenced = FALSE, !.asked = FALSE]]
  /\ calls' = Lost(r)
  /\ UNCHANGED <<ledger, fence, stored, now, takes, repeated>>

-----------------------------------------------------------------------------
Init ==
  /\ ledger = [holder |-> 0, owner |-> 0, pos |-> 0, since |-> Never]
  /\ relay = [r \in Relays |-> Out]
  /\ calls = {}
  /\ fence = 0
  /\ stored = [m \in 1..Messages |-> Never]
  /\ now = 0
  /\ takes = Takes
  /\ faults = Faults
  /\ repeated = FALSE

Next ==
  \/ \E r \in Relays :
       \/ Take(r) \/ Settle(r) \/ Release(r) \/ Kill(r)
       \/ Fence(r) \/ Read(r) \/ Close(r)
       \/ Begin(r) \/ Confirm(r) \/ LoseAnswer(r)
  \/ \E c \in calls : Store(c) \/ Refuse(c)

-----------------------------------------------------------------------------
(* What must hold *)

NoDuplicate == ~repeated

NothingSkipped == \A m \in 1..ledger.pos : stored[m] # Never

FirstsInOrder == \A m \in 1..Messages : stored[m] # Never => \A k \in 1..(m - 1) : stored[k] # Never

(* What must be reached: each of these is the opposite. *)
Recalled == ~\E r \in Relays : relay[r].in /\ relay[r].conf > ledger.pos /\ relay[r].conf \in relay[r].known
Refused == ~\E c \in calls : ~c.done /\ c.lost /\ c.term < fence
Zombie == ~\E c, d \in calls : c.by # d.by /\ ~c.lost /\ ~d.lost
Again == ~\E r \in Relays : relay[r].in /\ relay[r].doubt # Never /\ relay[r].owner = 3 /\ fence >= Term(2, 1) /\ relay[r].conf < Messages /\ ~relay[r].asked
=============================================================================
