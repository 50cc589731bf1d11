package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/internal/catalog"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Proposal is how a table could be adopted.
type Proposal struct {
	// Preset is the known layout that the table resembles; empty if it was made from the names of its columns alone.
	Preset string `json:"preset,omitempty"`
	// Layout is valid; a person should look at it before it is used.
	Layout table.Layout `json:"-"`
	// Missing is what the table lacks, the most important first.
	Missing []Remedy `json:"missing"`
	// Warnings are what the table cannot give, or what is not certain.
	Warnings []Warning `json:"warnings"`
	// Unused are columns that nothing is read from or written to.
	Unused []string `json:"unused"`
}

// Remedy is something that a table lacks, and the statement that adds it.
type Remedy struct {
	What     string `json:"what"`
	Why      string `json:"why"`
	SQL      string `json:"sql"`
	Optional bool   `json:"optional"`
}

// Warning is something to know before a table is adopted.
type Warning struct {
	About string `json:"about"` // a word that programs can look for, such as order-clock
	Text  string `json:"text"`
}

// ErrNotAnOutbox is returned by [Propose] for a table that lacks what every outbox has.
var ErrNotAnOutbox = errors.New("this is not a table of messages")

// Propose makes a layout for a table: that of the preset whose columns it has, completed by what its columns are called.
func Propose(t *catalog.Table) (*Proposal, error) {
	for _, p := range Presets() {
		if p.recognises(t) {
			return propose(t, p)
		}
	}
	return propose(t, Preset{})
}

// ProposeAs makes a layout for a table that is known to be of a kind.
func ProposeAs(t *catalog.Table, preset string) (*Proposal, error) {
	p, ok := PresetNamed(preset)
	if !ok {
		var names []string
		for _, p := range Presets() {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("adopt: there is no preset %q: there are %s", preset, strings.Join(names, ", "))
	}
	return propose(t, p)
}

func (p *Preset) recognises(t *catalog.Table) bool {
	for _, name := range p.known {
		if t.Column(name) == nil {
			return false
		}
	}
	return !slices.ContainsFunc(p.not, func(name string) bool { return t.Column(name) != nil })
}

// proposer makes one proposal.
type proposer struct {
	Proposal
	t      *catalog.Table
	l      *table.Layout
	preset Preset
}

func propose(t *catalog.Table, preset Preset) (*Proposal, error) {
	p := &proposer{t: t, preset: preset}
	p.Preset, p.Layout = preset.Name, clone(preset.Layout)
	p.l = &p.Layout
	p.l.Table = t.Name
	if err := p.identify(); err != nil {
		return nil, fmt.Errorf("adopt: table %q: %w: %w", t.Name, ErrNotAnOutbox, err)
	}
	p.mapColumns()
	if p.l.Columns.Payload == "" {
		p.l.Columns.Payload = p.likelyPayload()
	}
	if p.l.Columns.Payload == "" {
		return nil, fmt.Errorf("adopt: table %q: %w: no column looks like a payload: say with a mapping which it is", t.Name, ErrNotAnOutbox)
	}
	p.state()
	p.order()
	p.defaults()
	p.findMissing()
	p.warnings()
	for _, c := range t.Columns {
		if !p.isUsed(c.Name) {
			p.Unused = append(p.Unused, c.Name)
		}
	}
	if err := p.l.Validate(); err != nil {
		return nil, err
	}
	return &p.Proposal, nil
}

// identify finds the column by which a row is found again.
func (p *proposer) identify() error {
	if c := p.t.Column(p.l.ID); c != nil && fits("id", c) && p.t.Identifies(p.l.ID) {
		return nil
	}
	candidates := slices.Clone(p.t.PrimaryKey)
	for _, index := range p.t.Indexes {
		if index.Unique {
			candidates = append(candidates, index.Columns...)
		}
	}
	p.l.ID = ""
	for _, name := range candidates {
		c := p.t.Column(name)
		if c == nil || c.Nullable || !fits("id", c) || !expressible(name) || !p.t.Identifies(name) {
			continue
		}
		p.l.ID = name
		return nil
	}
	return fmt.Errorf("no column identifies a row by itself%s: add a unique index on one column", p.t.KeyText())
}

// mapColumns gives each key a column: what the preset calls so, or what others do.
func (p *proposer) mapColumns() {
	l := p.l
	for _, key := range table.ColumnKeys() {
		if c := p.t.Column(l.Column(key)); key != "id" && (c == nil || !fits(key, c) || c.Name == l.ID) {
			_ = l.SetColumn(key, "")
		}
	}
	for _, key := range table.ColumnKeys() {
		if key == "id" || l.Column(key) != "" {
			continue
		}
		for _, name := range catalog.Synonyms(key) {
			if c := p.free(key, name); c != nil {
				_ = l.SetColumn(key, c.Name)
				break
			}
		}
	}
	if l.State.NextAttempt == "" && l.Columns.DeliverAfter != "" && catalog.Plain(l.Columns.DeliverAfter) == "availableat" {
		l.State.NextAttempt = l.Columns.DeliverAfter
	}
	if l.Columns.DeliverAfter == "" { // a row whose next attempt is to come is not sent before
		l.Columns.DeliverAfter = l.State.NextAttempt
	}
	if l.State.Status == "" {
		for i := range p.t.Columns {
			if c := &p.t.Columns[i]; catalog.LooksLikeStatus(c) && !c.Generated && expressible(c.Name) && !p.isUsed(c.Name) && l.State.Status == "" {
				l.State.Status = c.Name
			}
		}
	}
}

// free returns the column with a name, as [catalog.Plain] writes it, that can hold what a key means and is nothing else yet.
func (p *proposer) free(key, name string) *catalog.Column {
	for i := range p.t.Columns {
		c := &p.t.Columns[i]
		if catalog.Plain(c.Name) != name || !expressible(c.Name) || p.isUsed(c.Name) || !fits(key, c) {
			continue
		}
		if key == "message_id" && !catalog.IsUUID(c) { // whatever else it holds could not be one
			continue
		}
		return c
	}
	return nil
}

func (p *proposer) isUsed(column string) bool {
	return slices.Contains(p.l.OrderBy, column) ||
		slices.ContainsFunc(table.ColumnKeys(), func(key string) bool { return p.l.Column(key) == column })
}

// likelyPayload is the only column that holds JSON or bytes.
func (p *proposer) likelyPayload() string {
	var found []string
	for i := range p.t.Columns {
		if c := &p.t.Columns[i]; (catalog.IsJSON(c) || catalog.IsBytes(c) && !catalog.IsUUID(c) || c.Type == "longtext") && expressible(c.Name) && !p.isUsed(c.Name) {
			found = append(found, c.Name)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// expressible reports whether a layout can name a column.
func expressible(name string) bool {
	return name != "" && !strings.ContainsAny(name, sqltext.NotInNames)
}

// order finds what the order of the table is.
func (p *proposer) order() {
	l := p.l
	id := p.t.Column(l.ID)
	times := func(name string) bool {
		return name != "" && catalog.IsTime(p.t.Column(name)) && !p.t.Column(name).Touched
	}
	switch {
	case catalog.IsInteger(id):
		l.OrderBy = []string{l.ID}
	case p.counter() != "":
		l.OrderBy = []string{p.counter()}
	case times(l.Columns.CreatedAt):
		l.OrderBy = []string{l.Columns.CreatedAt, l.ID}
	case times(l.Columns.OccurredAt):
		l.OrderBy = []string{l.Columns.OccurredAt, l.ID}
	default:
		l.OrderBy = []string{l.ID}
	}
}

// counter is a column, besides the ID, in which the server counts.
func (p *proposer) counter() string {
	for i := range p.t.Columns {
		if c := &p.t.Columns[i]; c.Counts && catalog.IsInteger(c) && expressible(c.Name) {
			return c.Name
		}
	}
	return ""
}

// defaults fills in what a table without a column for it says about all its messages.
func (p *proposer) defaults() {
	l := p.l
	_, name := p.t.Split()
	if p.preset.Name == "watermill" {
		name = strings.TrimPrefix(name, "watermill_")
		l.DefaultTopic = name
	}
	l.DefaultType = ""
	if l.Columns.Type == "" {
		l.DefaultType = name
		// Such a table tells its messages apart by where they go. That is their type then, and a routing key is also their name.
		l.Columns.Type = cmp.Or(l.Columns.RoutingKey, l.Columns.Topic)
		l.Columns.Topic = cmp.Or(l.Columns.Topic, l.Columns.RoutingKey)
	}
	if payload := p.t.Column(l.Columns.Payload); l.Columns.ContentType == "" && catalog.IsBytes(payload) {
		l.DefaultContentType = "application/octet-stream"
		if p.preset.Name == "watermill" { // that is what its other marshalers write
			l.DefaultContentType = ""
		}
	}
}

// clone copies a layout with its lists.
func clone(l table.Layout) table.Layout {
	l.OrderBy, l.State.Pending = slices.Clone(l.OrderBy), slices.Clone(l.State.Pending)
	return l
}
