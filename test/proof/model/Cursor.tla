------------------------------- MODULE Cursor -------------------------------
(***************************************************************************)
(* How one shard of the log is read: store/postgres/cursor.go, read.go and *)
(* feed.go, and read_log of migration/003_relay.                           *)
(*                                                                         *)
(* Producers take a transaction ID, draw numbers, and commit or abort, in  *)
(* any order. A snapshot is what PostgreSQL says it is: xmax is the latest *)
(* completed ID + 1, and xip lists those in flight below xmax, and no      *)
(* others. The reader pages through the difference of two snapshots, and   *)
(* may be started again from any position that it has recorded. The server *)
(* may crash: what it had not flushed is gone, IDs and numbers included.   *)
(*                                                                         *)
(* All messages have one key and one shard, so that the order of any two   *)
(* matters; what the reader learns of numbers in other shards is Others.   *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Writers,    \* number of producer transactions
  Messages,   \* number of messages that they write in total
  Page,       \* the most messages above the floor that one read returns
  Inflight,   \* the most messages of one transaction that was in flight
  Others,     \* whether reads also see the numbers of other shards
  Restarts,   \* number of restarts of the relay
  Crashes,    \* number of server crashes
  Variant     \* "right", or a way to do it wrong

(* What is done with this specification; see doc.go.
check   order     35853    [Writers=3 Messages=3]
check   shards    4426     [Writers=2 Messages=2 Page=1 Others=TRUE]
check   restarts  19701    [Writers=2 Messages=3 Page=1 Restarts=1]
check   crashes   5469     [Writers=2 Messages=2 Crashes=1]
nightly pages     48769    [Writers=3 Messages=3 Page=1]
nightly restarts  722194   [Writers=3 Messages=3 Page=1 Restarts=1]
nightly crashes   1282645  [Writers=3 Messages=2 Page=1 Restarts=1 Crashes=1]
nightly shards    1561697  [Writers=3 Messages=2 Page=1 Restarts=1 Others=TRUE]
revert  FloorNow             NoLoss  the floor is the highest number drawn when the snapshot is taken
revert  FloorOfSameRead      NoLoss  the read that takes an ID already uses the floor that this gains
revert  FloorWithoutID       NoLoss  no transaction of our own lies between the number and the snapshot
revert  NumberBeforeID       NoLoss  seq stands before xid in the table
revert  InflightIgnored      NoLoss  transactions that were in flight are not asked for
revert  SnapshotOfStandby    NoLoss  the snapshot lists nothing that is in flight
revert  SnapshotForEachPage  NoLoss  a window goes on with the snapshot of its latest page
revert  CursorSurvivesCrash  NoLoss [Crashes=1 Page=1]  the cursor in memory is used after a crash of the server
revert  InflightFromStart    NoDuplicate [Page=1]  each page begins again with what was in flight
revert  SnapshotIsNotRead    NoDuplicate [Page=1]  rows are read by a later snapshot than the one that is kept (VOLATILE)
revert  OrderOfIDs           CommitOrderPerKey  a window is ordered by transaction ID
revert  UnsafeCommit         NoPhantom [Crashes=1 Page=1]  producers commit without waiting for the disk
probe   LateCommitter        [Page=1]  a message is read after one with a higher number
probe   BelowTheFloor        [Page=1]  a message at or below the floor is found by the ID of its transaction
probe   NotListed            [Page=1]  a transaction is in flight that the last snapshot does not list, with a number below one that was read
probe   ResumedInsideWindow  [Restarts=1 Page=1]  the relay has started again in the middle of a window
probe   ReusedID             [Crashes=1 Page=1]  a transaction ID was handed out twice, because of a crash
*)

VARIABLES
  tx,         \* by writer: its state and transaction ID
  nextID,     \* the next transaction ID
  latest,     \* the latest transaction ID that has completed
  nextSeq,    \* the next sequence number
  rows,       \* messages: writer, ID, number, and what had been committed when the number was drawn
  read,       \* the reader's cursor
  settled,    \* the cursor that is recorded
  floor,      \* safe: a floor for every later snapshot; seen: the highest number seen
  call,       \* a read that has taken an ID and is not over; Nothing if there is none
  out,        \* what was read, first times only, in order
  sinceStart, \* what was read since the last start
  twice,      \* whether anything was read twice between two starts
  durable,    \* what a crash would leave
  restarts, crashes, resumed

vars == <<tx, nextID, latest, nextSeq, rows, read, settled, floor, call, out, sinceStart, twice, durable, restarts, crashes, resumed>>

Nothing == [none |-> TRUE]
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : x >= y
Larger(a, b) == IF a > b THEN a ELSE b

-----------------------------------------------------------------------------
(* PostgreSQL *)

OpenIDs == {tx[w].id : w \in {v \in 1..Writers : tx[v].state = "open" /\ tx[v].id > 0}}
           \cup (IF call = Nothing THEN {} ELSE {call.id} \ {0})

Snapshot == [xmax |-> latest + 1, xip |-> {x \in OpenIDs : x <= latest}]

Visible(id, s) == id < s.xmax /\ id \notin s.xip

(* What a statement with that snapshot sees: rows of aborted transactions are never there. *)
Seen(s) == {m \in rows : tx[m.writer].state = "committed" /\ Visible(m.id, s)}

(* What is in the WAL of a server that crashes now. An ID is there once it has completed or has written something. *)
Logged == [id |-> 1 + Max({latest} \cup {m.id : m \in rows}), seq |-> nextSeq, settled |-> settled]

-----------------------------------------------------------------------------
(* Producers *)

Committed == {m \in rows : tx[m.writer].state = "committed"}

Begin(w) ==
  /\ tx[w].state = "idle"
  /\ \A v \in 1..(w - 1) : tx[v].state # "idle"  \* writers are alike
  /\ IF Variant = "NumberBeforeID"
     THEN tx' = [tx EXCEPT ![w].state = "open"] /\ UNCHANGED nextID
     ELSE tx' = [tx EXCEPT ![w].state = "open", ![w].id = nextID] /\ nextID' = nextID + 1
  /\ UNCHANGED <<latest, nextSeq, rows, read, settled, floor, call, out, sinceStart, twice, durable, restarts, crashes, resumed>>

Name(m) == <<m.writer, m.seq>>

Row(w, id, seq) == [writer |-> w, id |-> id, seq |-> seq, before |-> {Name(m) : m \in Committed}]

Insert(w) ==
  /\ tx[w].state = "open"
  /\ tx[w].id > 0
  /\ Cardinality(rows) < Messages
  /\ rows' = rows \cup {Row(w, tx[w].id, nextSeq)}
  /\ nextSeq' = nextSeq + 1
  /\ UNCHANGED <<tx, nextID, latest, read, settled, floor, call, out, sinceStart, twice, durable, restarts, crashes, resumed>>

(* The wrong order of the columns: the number is drawn, and the ID is taken when others have done more. *)
Draw(w) ==
  /\ Variant = "NumberBeforeID"
  /\ tx[w].state = "open"
  /\ tx[w].id = 0
  /\ IF tx[w].hand = Nothing
     THEN /\ Cardinality(rows) < Messages
          /\ tx' = [tx EXCEPT ![w].hand = Row(w, 0, nextSeq)]
          /\ nextSeq' = nextSeq + 1
          /\ UNCHANGED <<nextID, rows>>
     ELSE /\ tx' = [tx EXCEPT ![w].id = nextID]
          /\ nextID' = nextID + 1
          /\ rows' = rows \cup {[tx[w].hand EXCEPT !.id = nextID]}
          /\ UNCHANGED nextSeq
  /\ UNCHANGED <<latest, read, settled, floor, call, out, sinceStart, twice, durable, restarts, crashes, resumed>>

End(w, how) ==
  /\ tx[w].state = "open"
  /\ tx[w].id > 0
  /\ tx' = [tx EXCEPT ![w].state = how]
  /\ latest' = Larger(latest, tx[w].id)
  /\ durable' = IF Crashes > 0 /\ how = "committed" /\ Variant # "UnsafeCommit"
                THEN [Logged EXCEPT !.id = Larger(Logged.id, tx[w].id + 1)] ELSE durable
  /\ UNCHANGED <<nextID, nextSeq, rows, read, settled, floor, call, out, sinceStart, twice, restarts, crashes, resumed>>

-----------------------------------------------------------------------------
(* The reader *)

(* The cursor inside the window that the snapshot ends. *)
Opened(c, s, f) ==
  IF c.s2 # Nothing /\ Variant # "SnapshotForEachPage" THEN c
  ELSE [c EXCEPT !.s2 = s, !.lo2 = Larger(IF c.s2 = Nothing THEN c.lo ELSE c.lo2, f)]

Closed(c) == [s1 |-> c.s2, lo |-> c.lo2, s2 |-> Nothing, lo2 |-> 0, last |-> 0]

(* The two branches of read_log: rows above the floor, and rows of transactions that s1 lists. *)
InWindow(m, c) == ~Visible(m.id, c.s1) /\ (c.s2 = Nothing \/ Visible(m.id, c.s2))
Above(c, R) == {m \in R : InWindow(m, c) /\ m.seq > Larger(c.lo, c.last)}
Below(c, R) ==
  IF Variant = "InflightIgnored" THEN {}
  ELSE {m \in R : InWindow(m, c) /\ m.id \in c.s1.xip /\ m.seq <= c.lo
                  /\ (m.seq > c.last \/ Variant = "InflightFromStart")}

Lowest(n, R) == {m \in R : Cardinality({k \in R : k.seq < m.seq}) < n}

InOrder(R) ==
  LET before(a, b) == IF Variant = "OrderOfIDs" THEN a.id < b.id \/ (a.id = b.id /\ a.seq < b.seq) ELSE a.seq < b.seq
  IN [i \in 1..Cardinality(R) |-> CHOOSE m \in R : Cardinality({k \in R : before(k, m)}) = i - 1]

NoCut == 1000

(* What one read brings: the messages in order, the cursor behind each of them, and the highest number. *)
PageOf(c, R, s, f) ==
  LET start  == Opened(c, s, f)
      asked  == IF Variant = "SnapshotForEachPage" THEN [c EXCEPT !.s2 = Nothing] ELSE c
      above  == Lowest(Page, Above(asked, R))
      below  == UNION {Lowest(Inflight, {m \in Below(asked, R) : m.id = x}) : x \in {m.id : m \in Below(asked, R)}}
      full   == {x \in {m.id : m \in below} : Cardinality({m \in below : m.id = x}) = Inflight}
      cuts   == {Max({m.seq : m \in {k \in below : k.id = x}}) : x \in full}
                \cup (IF Cardinality(above) = Page THEN {Max({m.seq : m \in above})} ELSE {})
      bound  == IF cuts = {} THEN NoCut ELSE Min(cuts)
      taken  == InOrder({m \in above \cup below : m.seq <= bound})
      end    == IF bound = NoCut THEN Closed(start) ELSE [start EXCEPT !.last = bound]
  IN [msgs |-> taken,
      at   |-> [i \in 1..Len(taken) |-> IF i = Len(taken) THEN end ELSE [start EXCEPT !.last = taken[i].seq]],
      end  |-> end,
      seen |-> Max({0} \cup {m.seq : m \in above \cup below})]

RECURSIVE Append1(_, _)
Append1(so, more) ==
  IF more = <<>> THEN so
  ELSE LET m == Name(Head(more))
       IN Append1(IF \E i \in 1..Len(so) : so[i] = m THEN so ELSE Append(so, m), Tail(more))

(* Takes in what a read has brought. The relay may record any position in it, now or never. *)
Take(page, safe, known) ==
  LET got == {Name(page.msgs[i]) : i \in 1..Len(page.msgs)}
  IN /\ read' = page.end
     /\ floor' = [safe |-> safe, seen |-> Max({floor.seen, page.seen, known})]
     /\ out' = Append1(out, page.msgs)
     /\ sinceStart' = sinceStart \cup got
     /\ twice' = (twice \/ got \cap sinceStart # {} \/ Cardinality(got) < Len(page.msgs))
     /\ settled' \in IF restarts = Restarts /\ crashes = Crashes THEN {settled}  \* not read any more
                     ELSE {settled} \cup {page.at[i] : i \in 1..Len(page.msgs)}
                          \cup (IF Len(page.msgs) = 0 /\ settled = read THEN {page.end} ELSE {})

(* What the reader learns of numbers in other shards: at most that all of them are drawn. *)
Known == {0} \cup (IF Others THEN {nextSeq - 1} ELSE {})

FloorFor(safe, candidate) ==
  CASE Variant = "FloorNow" -> nextSeq - 1
    [] Variant = "FloorOfSameRead" -> candidate
    [] OTHER -> safe

TakesID == floor.seen > floor.safe /\ Variant # "FloorWithoutID"

(* A read that takes no ID is one step: nobody can tell when it began. *)
Read ==
  /\ call = Nothing
  /\ ~TakesID
  /\ Variant # "SnapshotIsNotRead"
  /\ LET s == IF Variant = "SnapshotOfStandby" THEN [Snapshot EXCEPT !.xip = {}] ELSE Snapshot
         page == PageOf(read, Seen(Snapshot), s, FloorFor(floor.safe, floor.seen))
         safe == IF Variant = "FloorWithoutID" THEN Larger(floor.safe, floor.seen) ELSE floor.safe
     IN \E known \in Known : Take(page, safe, known)
  /\ UNCHANGED <<tx, nextID, latest, nextSeq, rows, call, durable, restarts, crashes, resumed>>

(* One that does holds its ID for a while. The snapshot is taken before. *)
BeginRead ==
  /\ call = Nothing
  /\ TakesID \/ Variant = "SnapshotIsNotRead"
  /\ call' = [id |-> IF TakesID THEN nextID ELSE 0,
              snapshot |-> IF Variant = "SnapshotOfStandby" THEN [Snapshot EXCEPT !.xip = {}] ELSE Snapshot,
              real |-> Snapshot, floor |-> FloorFor(floor.safe, floor.seen), candidate |-> floor.seen, drawn |-> nextSeq - 1]
  /\ nextID' = IF TakesID THEN nextID + 1 ELSE nextID
  /\ UNCHANGED <<tx, latest, nextSeq, rows, read, settled, floor, out, sinceStart, twice, durable, restarts, crashes, resumed>>

EndRead ==
  /\ call # Nothing
  /\ LET real == IF Variant = "SnapshotIsNotRead" THEN Snapshot ELSE call.real
     IN \E known \in {0} \cup (IF Others THEN {call.drawn} ELSE {}) :
          Take(PageOf(read, Seen(real), call.snapshot, call.floor),
               IF call.id > 0 THEN Larger(floor.safe, call.candidate) ELSE floor.safe, known)
  /\ latest' = Larger(latest, call.id)
  /\ call' = Nothing
  /\ UNCHANGED <<tx, nextID, nextSeq, rows, durable, restarts, crashes, resumed>>

-----------------------------------------------------------------------------
(* What goes wrong *)

(* Another relay goes on from what is recorded. *)
Restart ==
  /\ restarts < Restarts
  /\ restarts' = restarts + 1
  /\ read' = settled
  /\ floor' = [safe |-> 0, seen |-> 0]
  /\ latest' = IF call = Nothing THEN latest ELSE Larger(latest, call.id)
  /\ call' = Nothing
  /\ sinceStart' = {}
  /\ resumed' = (resumed \/ settled.s2 # Nothing)
  /\ UNCHANGED <<tx, nextID, nextSeq, rows, settled, out, twice, durable, crashes>>

(* The WAL is written to the disk, as it is every now and then. *)
Flush ==
  /\ crashes < Crashes
  /\ durable # Logged
  /\ Variant # "UnsafeCommit"
  /\ durable' = Logged
  /\ UNCHANGED <<tx, nextID, latest, nextSeq, rows, read, settled, floor, call, out, sinceStart, twice, restarts, crashes, resumed>>

Crash ==
  /\ crashes < Crashes
  /\ crashes' = crashes + 1
  /\ tx' = [w \in 1..Writers |-> IF tx[w].state = "open" \/ (tx[w].state = "committed" /\ tx[w].id >= durable.id)
                                THEN [tx[w] EXCEPT !.state = "aborted"] ELSE tx[w]]
  /\ nextID' = durable.id
  /\ latest' = durable.id - 1
  /\ nextSeq' = durable.seq
  /\ settled' = durable.settled
  /\ call' = Nothing
  /\ sinceStart' = IF Variant = "CursorSurvivesCrash" THEN sinceStart ELSE {}
  /\ IF Variant = "CursorSurvivesCrash" THEN UNCHANGED <<read, floor>>
     ELSE read' = durable.settled /\ floor' = [safe |-> 0, seen |-> 0]
  /\ UNCHANGED <<rows, out, twice, durable, restarts, resumed>>

-----------------------------------------------------------------------------
Beginning == [s1 |-> [xmax |-> 1, xip |-> {}], lo |-> 0, s2 |-> Nothing, lo2 |-> 0, last |-> 0]

Init ==
  /\ tx = [w \in 1..Writers |-> [state |-> "idle", id |-> 0, hand |-> Nothing]]
  /\ nextID = 1
  /\ latest = 0
  /\ nextSeq = 1
  /\ rows = {}
  /\ read = Beginning
  /\ settled = Beginning
  /\ floor = [safe |-> 0, seen |-> 0]
  /\ call = Nothing
  /\ out = <<>>
  /\ sinceStart = {}
  /\ twice = FALSE
  /\ durable = [id |-> 1, seq |-> 1, settled |-> Beginning]
  /\ restarts = 0
  /\ crashes = 0
  /\ resumed = FALSE

Next ==
  \/ \E w \in 1..Writers : Begin(w) \/ Insert(w) \/ Draw(w) \/ End(w, "committed") \/ End(w, "aborted")
  \/ Read \/ BeginRead \/ EndRead \/ Restart \/ Flush \/ Crash

-----------------------------------------------------------------------------
(* What must hold *)

(* Every committed message was read, or is still to be found: by what is left of the window, or by the windows behind it. *)
Found(m, c) ==
  \/ m \in Above(c, {m}) \cup Below(c, {m})
  \/ c.s2 # Nothing /\ m \in Above(Closed(c), {m}) \cup Below(Closed(c), {m})
WasRead(m) == \E i \in 1..Len(out) : out[i] = Name(m)

NoLoss == \A m \in Committed : WasRead(m) \/ Found(m, read)

NoDuplicate == ~twice

NoPhantom == \A i \in 1..Len(out) : \E m \in Committed : Name(m) = out[i]

(* If a had committed before b's number was drawn, a comes first. *)
CommitOrderPerKey ==
  \A i \in 1..Len(out) : \A m \in Committed :
    Name(m) = out[i] => \A a \in m.before : \E j \in 1..(i - 1) : out[j] = a

(* What must be reached: each of these is the opposite. *)
LateCommitter == ~\E i, j \in 1..Len(out) : i < j /\ out[i][2] > out[j][2]
BelowTheFloor == ~(call = Nothing /\ Below(read, Seen(Snapshot)) # {})
NotListed == ~\E w \in 1..Writers :
  /\ tx[w].state = "open"
  /\ tx[w].id >= read.s1.xmax
  /\ \E m \in rows : m.writer = w /\ m.seq < floor.seen
ResumedInsideWindow == ~resumed
ReusedID == ~\E v, w \in 1..Writers : v # w /\ tx[v].id = tx[w].id /\ tx[v].id > 0
=============================================================================
