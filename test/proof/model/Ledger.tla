------------------------------- MODULE Ledger -------------------------------
(***************************************************************************)
(* Who reads a shard, and how far it is settled: balance and settle of     *)
(* migration/003_relay, store/postgres/ledger.go and feed.go, and how      *)
(* relays publish (relay/worker.go, settler.go, keeper.go).                *)
(*                                                                         *)
(* Taking a shard, recording progress and giving it up are all the insert  *)
(* of the row n + 1, which succeeds if the relay knows the newest row. A   *)
(* relay publishes only within its lease, by its own clock, which counts   *)
(* from before the call that renewed it. What it has sent may arrive when  *)
(* it is gone. The server may crash and lose the last rows of the ledger,  *)
(* because no write waits for the disk.                                    *)
(*                                                                         *)
(* Times are what is left of them, so that there is no end of time. A row  *)
(* is its content, and whether a relay's n is that of the newest one.      *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Relays,     \* a set of numbers
  Messages,   \* how many there are, numbered from 1
  Call,       \* the most messages in one call of the broker
  OneKey,     \* whether the messages are of one key, so that the order of any two matters, or each of its own
  Lease,      \* how long a row is valid
  Faults,     \* the number of faults
  Crashes,    \* whether a crash of the server is one of them
  Variant     \* "right", or a way to do it wrong

(* What is done with this specification; see doc.go.
check   faults    30692    [Faults=1]
check   keys      1204     [Faults=0 OneKey=FALSE]
nightly crash     94840    [Faults=1 Messages=1 Crashes=TRUE]
nightly keys      60440    [Faults=1 OneKey=FALSE]
nightly leases    104910   [Faults=1 Lease=2]
nightly messages  98102    [Faults=1 Messages=3]
nightly crashes   805386   [Faults=1 Crashes=TRUE]
revert  SettledBeforeConfirmed  NothingSkipped    what was handed out is recorded, not what was confirmed
revert  HighestConfirmed        NothingSkipped [OneKey=FALSE]  the last confirmation counts, not the last without a gap before it
revert  NoFence                 OneWriter         any relay appends behind the newest row, of any writer
revert  LiveLeaseTaken          OneWriter         a shard is taken without a look at its lease
revert  GenerationIgnored       OneWriter [Crashes=TRUE]  a relay goes on as before after a crash of the server
revert  NoDeadline              OneSender         a relay sends without a look at its own lease
revert  HeldLeaseIsNew          OneSender         a relay that finds that it holds the shard sends before it has renewed the lease
revert  RenewedByAnswer         OneSender         a lease counts from the answer, not from before the call
revert  ReleasedInFlight        RepeatsExplained  a stopping relay does not wait for what is on its way
revert  AnyOrder                FirstsInOrder     several messages of a key are under way, and the broker takes any
probe   TakenOver   a relay has taken the shard of one that had sent more than it had recorded
probe   Fenced      a relay is told that its shard is another's
probe   Forgotten   [Crashes=TRUE]  the server has forgotten a row, and its writer does not know yet that another has the shard
probe   Late        a message is on its way from a relay that is gone, and another has sent it and recorded it
*)

VARIABLES
  top,        \* the newest row of the ledger: owner, position, and the rest of its lease
  disk,       \* the newest row that a crash leaves
  server,     \* the generation: how often it has crashed
  relay,      \* by name: the state of a relay
  calls,      \* calls of the broker under way, including those whose relay has given up
  got,        \* what the broker has accepted
  repeated,   \* whether it has accepted anything twice
  inverted,   \* whether it has accepted anything before an earlier one
  robbed,     \* whether a shard was taken within its lease
  faults      \* the number of remaining faults

vars == <<top, disk, server, relay, calls, got, repeated, inverted, robbed, faults>>

Nothing == [none |-> TRUE]

Least(S) == CHOOSE m \in S : \A k \in S : m <= k
Greatest(S) == CHOOSE m \in S : \A k \in S : m >= k

Fault == faults > 0 /\ faults' = faults - 1

Live(row) == ~row.released /\ row.left > 0

Out(r) == [id |-> r.id, state |-> "out", mine |-> FALSE, conf |-> 0, ahead |-> {}, left |-> 0, server |-> 0, ask |-> Nothing]

(* The row behind the newest, if the relay has seen that. Others that have seen it come too late from now on. *)
Succeeds(r) == relay[r].mine \/ Variant = "NoFence"

Insert(r, pos, released, known) ==
  /\ top' = [holder |-> relay[r].id, pos |-> pos, released |-> released, left |-> Lease]
  /\ robbed' = (robbed \/ (Live(top) /\ top.holder # relay[r].id))
  /\ relay' = [o \in Relays |-> IF o = r THEN known ELSE [relay[o] EXCEPT !.mine = FALSE]]

-----------------------------------------------------------------------------
(* Taking the shard: balance *)

(* The look and the insert are two statements of one function: others may come between. What is held since before a reset is
   not written again, nor what was taken by a call whose answer was lost. *)
Look(r) ==
  /\ relay[r].state = "out"
  /\ LET held == top.holder = relay[r].id /\ ~top.released
     IN /\ held \/ ~Live(top) \/ Variant = "LiveLeaseTaken"
        /\ relay' = [relay EXCEPT ![r] = [@ EXCEPT !.state = IF held THEN "in" ELSE "looked", !.mine = TRUE, !.conf = top.pos,
                      !.server = server, !.left = IF held /\ Variant = "HeldLeaseIsNew" THEN Lease ELSE 0]]
  /\ UNCHANGED <<top, disk, server, calls, got, repeated, inverted, robbed, faults>>

TakeOver(r) ==
  /\ relay[r].state = "looked"
  /\ \E lost \in BOOLEAN :
       /\ IF lost THEN Fault ELSE UNCHANGED faults
       /\ IF Succeeds(r)
          THEN Insert(r, relay[r].conf, FALSE, IF lost THEN Out(relay[r]) ELSE [relay[r] EXCEPT !.state = "in", !.mine = TRUE])
          ELSE relay' = [relay EXCEPT ![r] = Out(@)] /\ UNCHANGED <<top, robbed>>
  /\ UNCHANGED <<disk, server, calls, got, repeated, inverted>>

-----------------------------------------------------------------------------
(* Publishing *)

(* A relay counts on no lease before it has renewed it: it may have held the shard for a while without knowing. *)
InLease(r) == relay[r].left > 0

Releasing(r) == relay[r].ask # Nothing /\ relay[r].ask.release

OwnCalls(r) == {c \in calls : c.by = relay[r].id /\ ~c.stale}

BeginCall(r) ==
  /\ relay[r].state = "in"
  /\ OwnCalls(r) = {}
  /\ ~Releasing(r)
  /\ InLease(r) \/ Variant = "NoDeadline"
  /\ \E to \in (relay[r].conf + 1)..(relay[r].conf + Call) :
       /\ to <= Messages
       /\ calls' = calls \cup {[by |-> relay[r].id, from |-> relay[r].conf + 1, to |-> to, missing |-> ((relay[r].conf + 1)..to) \ relay[r].ahead,
                                left |-> IF Variant = "NoDeadline" THEN Lease ELSE relay[r].left, stale |-> FALSE]}
  /\ UNCHANGED <<top, disk, server, relay, got, repeated, inverted, robbed, faults>>

(* The broker accepts the next message of a call. A call ends with the lease, but what it has sent may still be on its way. *)
Accept(c) ==
  /\ c.left > 0 \/ c.stale
  /\ \E m \in c.missing :
       /\ m = Least(c.missing) \/ ~OneKey \/ Variant = "AnyOrder"
       /\ calls' = (calls \ {c}) \cup (IF c.stale /\ c.missing = {m} THEN {} ELSE {[c EXCEPT !.missing = @ \ {m}]})
       /\ got' = got \cup {m}
       /\ repeated' = (repeated \/ m \in got)
       /\ inverted' = (inverted \/ (m \notin got /\ \E k \in 1..(m - 1) : k \notin got))
  /\ UNCHANGED <<top, disk, server, relay, robbed, faults>>

(* How far a relay has come, without a gap. *)
Reached(r, confirmed) ==
  IF Variant = "HighestConfirmed" /\ confirmed # {} THEN Greatest(confirmed)
  ELSE Greatest({m \in relay[r].conf..Messages : ((relay[r].conf + 1)..m) \subseteq confirmed})

(* The call is answered: for all of its messages, or for those that had arrived when its time was over. The broker may refuse
   messages of some keys, and accept those of others. *)
Answered(r) ==
  /\ relay[r].state = "in"
  /\ \E c \in OwnCalls(r) :
       /\ c.missing = {} \/ c.left = 0 \/ ~OneKey
       /\ LET confirmed == relay[r].ahead \cup ((c.from..c.to) \ c.missing)
              reached == Reached(r, confirmed)
          IN relay' = [relay EXCEPT ![r] = [@ EXCEPT !.conf = reached, !.ahead = {m \in confirmed : m > reached}]]
       /\ calls' = calls \ {c}
  /\ UNCHANGED <<top, disk, server, got, repeated, inverted, robbed, faults>>

-----------------------------------------------------------------------------
(* Recording progress: settle. The row is there before the answer is. *)

Place(r) ==
  IF Variant = "SettledBeforeConfirmed" /\ OwnCalls(r) # {} THEN (CHOOSE c \in OwnCalls(r) : TRUE).to ELSE relay[r].conf

Settle(r, release) ==
  /\ relay[r].state = "in"
  /\ relay[r].ask = Nothing
  /\ relay[r].server = server \/ Variant = "GenerationIgnored"
  /\ release => ((OwnCalls(r) = {} /\ relay[r].ahead = {}) \/ Variant = "ReleasedInFlight")
  /\ LET asked == [relay[r] EXCEPT !.ask = [kept |-> Succeeds(r), release |-> release, left |-> Lease]]
     IN IF Succeeds(r) THEN Insert(r, Place(r), release, asked)
        ELSE relay' = [relay EXCEPT ![r] = asked] /\ UNCHANGED <<top, robbed>>
  /\ UNCHANGED <<disk, server, calls, got, repeated, inverted, faults>>

(* What is left of the calls of a relay that gives up on them. *)
GivenUp(id, stale) ==
  LET own == {c \in calls : c.by = id}
  IN (calls \ own) \cup (IF stale THEN {[c EXCEPT !.stale = TRUE, !.left = 0] : c \in {k \in own : k.missing # {}}} ELSE {})

SettleAnswered(r) ==
  /\ relay[r].state = "in"
  /\ relay[r].ask # Nothing
  /\ LET ask == relay[r].ask
         ends == ~ask.kept \/ ask.release
     IN /\ relay' = [relay EXCEPT ![r] = IF ends THEN Out(@)
                     ELSE [@ EXCEPT !.ask = Nothing, !.left = IF Variant = "RenewedByAnswer" THEN Lease ELSE ask.left]]
        /\ calls' = IF ends THEN GivenUp(relay[r].id, TRUE) ELSE calls
  /\ UNCHANGED <<top, disk, server, got, repeated, inverted, robbed, faults>>

(* A relay learns from any answer that the server has crashed. What it knows is void. *)
Reset(r) ==
  /\ relay[r].state = "in"
  /\ relay[r].server # server
  /\ Variant # "GenerationIgnored"
  /\ relay' = [relay EXCEPT ![r] = Out(@)]
  /\ calls' = GivenUp(relay[r].id, TRUE)
  /\ UNCHANGED <<top, disk, server, got, repeated, inverted, robbed, faults>>

-----------------------------------------------------------------------------
(* What goes wrong *)

(* The process dies. Its successor is a stranger to the ledger. *)
Kill(r) ==
  /\ Fault
  /\ relay[r].state # "out"
  /\ relay' = [relay EXCEPT ![r] = [Out(@) EXCEPT !.id = @ + 10]]
  /\ calls' = GivenUp(relay[r].id, TRUE)
  /\ UNCHANGED <<top, disk, server, got, repeated, inverted, robbed>>

(* The answer of the broker is lost: what was sent may arrive at any time, or not at all. *)
LoseCall(r) ==
  /\ Fault
  /\ OwnCalls(r) # {}
  /\ \E arrives \in BOOLEAN : calls' = GivenUp(relay[r].id, arrives)
  /\ UNCHANGED <<top, disk, server, relay, got, repeated, inverted, robbed>>

(* The answer of the database is lost. The relay asks what has become of its row before it writes again. *)
LoseAnswer(r) ==
  /\ Fault
  /\ relay[r].ask # Nothing
  /\ LET mine == top.holder = relay[r].id /\ ~top.released
     IN /\ relay' = [relay EXCEPT ![r] = IF mine THEN [@ EXCEPT !.ask = Nothing] ELSE Out(@)]
        /\ calls' = IF mine THEN calls ELSE GivenUp(relay[r].id, TRUE)
  /\ UNCHANGED <<top, disk, server, got, repeated, inverted, robbed>>

Flush ==
  /\ Crashes /\ faults > 0
  /\ disk # top
  /\ disk' = top
  /\ UNCHANGED <<top, server, relay, calls, got, repeated, inverted, robbed, faults>>

Crash ==
  /\ Crashes /\ Fault
  /\ disk # top  \* otherwise nothing is different afterwards
  /\ top' = disk
  /\ server' = server + 1
  /\ relay' = [r \in Relays |-> IF relay[r].state = "looked" THEN Out(relay[r]) ELSE [relay[r] EXCEPT !.ask = Nothing]]
  /\ UNCHANGED <<disk, calls, got, repeated, inverted, robbed>>

(* A relay that does not renew its lease in time stands still: that is a fault. *)
Less(n) == IF n = 0 THEN 0 ELSE n - 1

Tick ==
  /\ \/ top.left > 0
     \/ \E r \in Relays : relay[r].left > 0
     \/ \E c \in calls : c.left > 0
  /\ IF top.left = 1 /\ \E r \in Relays : relay[r].id = top.holder /\ relay[r].state = "in" /\ ~top.released
     THEN Fault ELSE UNCHANGED faults
  /\ top' = [top EXCEPT !.left = Less(@)]
  /\ disk' = IF faults = 0 THEN disk ELSE [disk EXCEPT !.left = Less(@)]
  /\ relay' = [r \in Relays |-> [relay[r] EXCEPT !.left = Less(@), !.ask = IF @ = Nothing THEN @ ELSE [@ EXCEPT !.left = Less(@)]]]
  /\ calls' = {[c EXCEPT !.left = Less(@)] : c \in calls}
  /\ UNCHANGED <<server, got, repeated, inverted, robbed>>

-----------------------------------------------------------------------------
Init ==
  /\ top = [holder |-> 0, pos |-> 0, released |-> TRUE, left |-> 0]
  /\ disk = top
  /\ server = 0
  /\ relay = [r \in Relays |-> Out([id |-> r])]
  /\ calls = {}
  /\ got = {}
  /\ repeated = FALSE /\ inverted = FALSE /\ robbed = FALSE
  /\ faults = Faults

Next ==
  \/ \E r \in Relays :
       \/ Look(r) \/ TakeOver(r) \/ BeginCall(r) \/ Answered(r)
       \/ Settle(r, FALSE) \/ Settle(r, TRUE) \/ SettleAnswered(r) \/ Reset(r)
       \/ Kill(r) \/ LoseCall(r) \/ LoseAnswer(r)
  \/ \E c \in calls : Accept(c)
  \/ Flush \/ Crash \/ Tick

-----------------------------------------------------------------------------
(* What must hold *)

NothingSkipped == \A m \in 1..top.pos : m \in got

OneWriter == ~robbed

FirstsInOrder == OneKey => ~inverted

(* A sender holds the shard, as far as the database knows; after a crash of that it may be another for a while. *)
OneSender ==
  \A r \in Relays :
    /\ relay[r].state = "in"
    /\ relay[r].server = server
    /\ ~Releasing(r)
    /\ InLease(r) \/ \E c \in OwnCalls(r) : c.left > 0
    => top.holder = relay[r].id

RepeatsExplained == repeated => faults < Faults

(* What must be reached: each of these is the opposite. *)
TakenOver == ~\E r \in Relays : relay[r].state = "in" /\ InLease(r) /\ \E m \in got : m > relay[r].conf /\ OwnCalls(r) = {}
                               /\ \E o \in Relays : o # r /\ relay[o].state = "in"
Fenced == ~\E r \in Relays : relay[r].ask # Nothing /\ ~relay[r].ask.kept
Forgotten == ~\E r \in Relays : relay[r].state = "in" /\ relay[r].server # server /\ Live(top) /\ top.holder # relay[r].id
Late == ~\E c \in calls : c.stale /\ \E m \in c.missing : m <= top.pos
=============================================================================
