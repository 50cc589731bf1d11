package tap

import (
	"bytes"
	"encoding/binary"
)

// Postgres parses version 3 of PostgreSQL's protocol, unencrypted. A call is one execution of a
// statement, also of one among several that are sent together. name names it by its text and its
// arguments.
func Postgres(name func(sql string, args [][]byte) string) func() Protocol {
	return func() Protocol { return &postgres{name: name, texts: make(map[string]string)} }
}

type postgres struct {
	name  func(sql string, args [][]byte) string
	texts map[string]string // of prepared statements, by name

	begun bool   // the startup message was sent
	sent  []byte // an incomplete message
	heard []byte
	sql   string // of the last bound statement
	args  [][]byte

	ready  int  // number of ReadyForQuery messages received,
	wanted int  // and expected for all requests so far
	put    int  // statements since the last Sync
	done   int  // of these
	failed bool // one of these failed
}

const flushMessage = "H\x00\x00\x00\x04"

// Cut implements [Protocol].
func (p *postgres) Cut(sent []byte) []Call {
	p.sent = append(p.sent, sent...)
	var calls []Call
	var run []byte // messages that belong to the next execution
	if !p.begun {
		n, ok := p.whole(p.sent, 0)
		if !ok {
			return nil
		}
		p.begun, p.wanted = true, 1
		calls = append(calls, Call{Bytes: p.take(n)})
	}
	for {
		n, ok := p.whole(p.sent, 1)
		if !ok {
			break
		}
		message := p.take(n)
		body := message[5:]
		run = append(run, message...)
		switch message[0] {
		case 'P':
			id, sql := text(&body), text(&body)
			p.texts[id] = sql
		case 'B':
			text(&body)
			p.sql, p.args = p.texts[text(&body)], arguments(body)
		case 'E':
			p.put++
			place := p.put
			calls = append(calls, Call{
				Name: p.name(p.sql, p.args), Bytes: run, Nudge: []byte(flushMessage),
				Answered: func() bool { return p.done >= place || p.failed },
			})
			run = nil
		case 'Q':
			calls = append(calls, p.synced(Call{Name: p.name(text(&body), nil), Bytes: run}))
			run = nil
		case 'S':
			last := len(calls) - 1
			if last < 0 || p.put == 0 { // nothing was executed
				calls = append(calls, p.synced(Call{Bytes: run}))
			} else { // what is executed outside of a transaction is committed by this
				calls[last].Bytes = append(calls[last].Bytes, run...)
				calls[last].Nudge = nil
				calls[last] = p.synced(calls[last])
			}
			p.put, run = 0, nil
		}
	}
	if len(run) > 0 {
		calls = append(calls, Call{Bytes: run})
	}
	return calls
}

// synced is a call behind which the server says that it is ready.
func (p *postgres) synced(c Call) Call {
	p.wanted++
	wanted := p.wanted
	c.Answered = func() bool { return p.ready >= wanted }
	return c
}

// Hear implements [Protocol].
func (p *postgres) Hear(received []byte) {
	p.heard = append(p.heard, received...)
	for {
		n, ok := p.whole(p.heard, 1)
		if !ok {
			return
		}
		switch p.heard[0] {
		case 'C', 'I', 's': // complete, empty, suspended
			p.done++
		case 'E':
			p.failed = true
		case 'Z':
			p.ready++
			p.done, p.failed = 0, false
		}
		p.heard = p.heard[n:]
	}
}

// whole returns the length of the first message, whose own length stands at an offset.
func (p *postgres) whole(b []byte, offset int) (int, bool) {
	if len(b) < offset+4 {
		return 0, false
	}
	n := offset + int(binary.BigEndian.Uint32(b[offset:]))
	return n, len(b) >= n
}

func (p *postgres) take(n int) []byte {
	message := bytes.Clone(p.sent[:n])
	p.sent = p.sent[n:]
	return message
}

// text takes a text with a zero behind it from the front.
func text(b *[]byte) string {
	before, after, _ := bytes.Cut(*b, []byte{0})
	*b = after
	return string(before)
}

// arguments reads what Bind has behind its names.
func arguments(b []byte) (args [][]byte) {
	number := func() (n int) {
		n = int(binary.BigEndian.Uint16(b))
		b = b[2:]
		return n
	}
	b = b[2*number():] // formats
	for range number() {
		n := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n < 0 {
			args = append(args, nil)
			continue
		}
		args = append(args, b[:n])
		b = b[n:]
	}
	return args
}
