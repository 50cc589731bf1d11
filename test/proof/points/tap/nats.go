package tap

import (
	"bytes"
	"strconv"
	"strings"
)

// NATS parses the unencrypted NATS protocol. A call is a message that the client publishes: to a
// subject of a stream, to the server's API, or to the address of an acknowledgement. name names it
// by its subject and its content.
func NATS(name func(subject string, content []byte) string) func() Protocol {
	return func() Protocol {
		return &nats{name: name, subscribed: make(map[string]string), answers: make(map[string]bool)}
	}
}

type nats struct {
	name func(subject string, content []byte) string

	sent, heard  []byte
	subscribed   map[string]string // IDs of subscriptions, by subject
	answers      map[string]bool   // subjects that received something, and IDs of subscriptions
	pings, pongs int
}

// Cut implements [Protocol].
func (p *nats) Cut(sent []byte) []Call {
	p.sent = append(p.sent, sent...)
	var calls []Call
	for {
		words, head, content, n, ok := packet(p.sent)
		if !ok {
			return calls
		}
		call := Call{Bytes: bytes.Clone(p.sent[:n])}
		p.sent = p.sent[n:]
		switch words[0] {
		case "PING":
			p.pings++
		case "SUB":
			p.subscribed[words[1]] = words[len(words)-1]
		case "PUB", "HPUB":
			call.Name = p.name(words[1], content)
			if len(words) == 3+head { // no reply address: the next PONG shows that the server has received it
				pings := p.pings + 1
				call.Nudge = []byte("PING\r\n")
				call.Answered = func() bool { return p.pongs >= pings }
				break
			}
			address := words[2]
			delete(p.answers, p.subscribed[address])
			call.Answered = func() bool { return p.answers[address] || p.answers[p.subscribed[address]] }
		}
		calls = append(calls, call)
	}
}

// Hear implements [Protocol].
func (p *nats) Hear(received []byte) {
	p.heard = append(p.heard, received...)
	for {
		words, _, _, n, ok := packet(p.heard)
		if !ok {
			return
		}
		p.heard = p.heard[n:]
		switch words[0] {
		case "PONG":
			p.pongs++
		case "MSG", "HMSG":
			p.answers[words[1]] = true
			p.answers[words[2]] = true
		}
	}
}

// packet parses the first line into words and its payload, and returns the length of both. Head is
// 1 if there are headers.
func packet(b []byte) (words []string, head int, content []byte, n int, ok bool) {
	line, _, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok {
		return nil, 0, nil, 0, false
	}
	n = len(line) + 2
	words = strings.Fields(string(line))
	if len(words) == 0 {
		words = []string{""}
	}
	switch words[0] {
	case "HPUB", "HMSG":
		head = 1
	case "PUB", "MSG":
	default:
		return words, 0, nil, n, true
	}
	size, _ := strconv.Atoi(words[len(words)-1])
	if len(b) < n+size+2 {
		return nil, 0, nil, 0, false
	}
	return words, head, b[n : n+size], n + size + 2, true
}
