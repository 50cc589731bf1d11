package adopt

import (
	"strings"

	"github.com/postrider/postrider/store/table/internal/catalog"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// warnings says what the table cannot give.
func (p *proposer) warnings() {
	l, s := p.l, &p.l.State
	p.orderWarnings()
	p.warn("one-feed", "The table says in each row what has become of it, so a row goes to one feed; for a second reader, let messages go to a broker first.")
	if s.Delete {
		p.warn("deletes", "There is neither a status nor a time of delivery: a row is deleted when it was delivered, and nothing can be sent again from here.")
	}
	switch {
	case s.Processing != "" && s.ClaimedAt == "":
		p.warn("old-relay", "Rows with %s = %q have no time of the claim. Stop the old relay before the new one starts: its claims are taken over at once.",
			s.Status, s.Processing)
	case s.Processing == "":
		p.warn("old-relay", "Rows are not marked while they are under way. What the old relay holds with FOR UPDATE is left to it; one that does not lock its rows "+
			"until they are sent has to stop before the new one starts, or both send the same rows.")
	}
	if c := p.t.Column(s.Status); c != nil && c.Nullable {
		p.warn("status-null", "%q may be null, and rows without a status are left alone.", c.Name)
	}
	if err := l.Check(p.t); err != nil {
		p.warn("status-room", "%s", strings.ReplaceAll(strings.ReplaceAll(err.Error(), "table: ", ""), "\n", "; "))
	}
	p.payloadWarnings()
	if c := p.t.Column(l.ID); l.Columns.MessageID == "" && !catalog.IsUUID(c) {
		p.warn("derived-id", "The ID %q is not a UUID, so the message's ID is made from the database, the table's name and the row's ID: a table that is renamed "+
			"or filled again gives other messages the same IDs, or the same messages others.", l.ID)
	}
	p.zoneWarning()
	if p.Missing != nil && !p.Missing[0].Optional && p.t.Rows > 100_000 {
		p.warn("size", "The table has about %d rows: create the index before the relay starts.", p.t.Rows)
	}
}

func (p *proposer) orderWarnings() {
	l := p.l
	first := p.t.Column(l.OrderBy[0])
	switch {
	case catalog.IsTime(first):
		p.warn("order-clock", "The order is that of the clock in %q: rows that were written in the same instant, or by servers whose clocks differ, "+
			"can change places. A column that counts would give a certain order.", first.Name)
	case !catalog.IsInteger(first):
		p.warn("order-id", "The order is that of %q, which does not grow: rows of one key can change places. A time of creation, or better a column "+
			"that counts, would give an order.", first.Name)
	}
	if l.Columns.Key == "" && l.Columns.AggregateID == "" {
		p.warn("no-key", "No column says which messages belong together: there is no order between them.")
	} else {
		p.warn("late-commit", "A row that commits late is found, because rows are found by what has become of them. But it may come after a row of its key "+
			"that was written later and committed earlier: only producers that lock what they change, as an UPDATE of the aggregate does, rule that out.")
	}
}

func (p *proposer) payloadWarnings() {
	c := p.t.Column(p.l.Columns.Payload)
	switch {
	case c.Type == "jsonb":
		p.warn("payload", "%q is jsonb: what is delivered means the same, but is not byte for byte what was written.", c.Name)
	case catalog.IsBytes(c) && p.l.Columns.ContentType == "":
		p.warn("payload", "%q holds bytes, and nothing says of which kind: set default content_type if they are all alike.", c.Name)
	}
	if c.Nullable {
		p.warn("payload-null", "%q may be null: such a message is delivered with an empty body.", c.Name)
	}
}

// zoneWarning is about times that mean something else in another session.
func (p *proposer) zoneWarning() {
	for _, key := range []string{"deliver_after", "next_attempt", "claimed_at", "published_at", "created_at"} {
		c := p.t.Column(p.l.Column(key))
		if c == nil || hasZone(c) || p.t.Dialect == sqltext.MySQL && catalog.Has(c, "timestamp") {
			continue
		}
		p.warn("zone", "%q has no time zone: it is read and written as the server's own time. Producers that write another zone make it wrong by hours.", c.Name)
		return
	}
}
