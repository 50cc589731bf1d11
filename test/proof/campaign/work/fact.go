package work

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Types of messages. The operator recognizes poison by its type.
const (
	TypeFact   = "campaign.fact"
	TypePoison = "campaign.poison"
	// TypeForeign is the type of foreign messages that consumers refuse.
	TypeForeign = "campaign.foreign"
)

// MarkForeign is the header of messages that are not from our producers: see package foreign.
const MarkForeign = "campaign-foreign"

// headerHeading carries what a payload is too short for.
const headerHeading = headerPrefix + "heading"

// headerPrefix begins the names of the producer's headers. Brokers and protocols add others.
const headerPrefix = "campaign-"

// Fact is one message of the workload: the n-th of its key. Its payload begins with a heading of
// destination, key and number, so that it can be read without the ledger; if it is too short for
// that, a header has the heading.
//
// The key of an intent is the name of a key, which is short; see [Spelling].
type Fact struct {
	record.Intent
	Topic   string
	Payload []byte
	Headers map[string]string
}

// noise pads payloads.
var noise = func() []byte {
	b := make([]byte, 0, 2<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for len(b) < cap(b) {
		b = binary.LittleEndian.AppendUint64(b, random.Uint64())
	}
	return b
}()

// NewFact returns a message. A number of 0 means that it is not known yet.
func NewFact(destination, key string, seq int64) Fact {
	return newFact(destination, key, seq, destination, payloadSize(), false)
}

// payloadSize draws a size: most are small, some are 0, and a few reach the limit.
func payloadSize() int {
	switch n := rand.IntN(1000); {
	case n < 40:
		return 0
	case n < 140:
		return 1 + rand.IntN(60)
	case n < 950:
		return 60 + rand.IntN(1+rand.IntN(1900))
	case n < 994:
		return 2000 + rand.IntN(14_000)
	default:
		return world.MaxPayload - rand.IntN(2)*rand.IntN(1000)
	}
}

// NewPoison returns a message that its destination must reject: too large, or to a missing name.
func NewPoison(destination, key string, seq int64) Fact {
	size := tooLarge(destination)
	if rand.IntN(2) == 0 || size == 0 {
		return NewNowhere(destination, key, seq)
	}
	return newFact(destination, key, seq, destination, size, true)
}

// NewNowhere returns a message to a missing name.
func NewNowhere(destination, key string, seq int64) Fact {
	return newFact(destination, key, seq, destination+nowhere, 100, true)
}

func newFact(destination, key string, seq int64, topic string, size int, poison bool) Fact {
	f := Fact{Topic: topic}
	f.Destination, f.Key, f.Seq, f.ID = destination, key, seq, postrider.NewID().String()
	f.Poison, f.Unnumbered, f.Unordered = poison, seq == 0, Spelling(key) == ""
	heading := destination + " " + key + " "
	if f.Unnumbered {
		heading += "? "
	} else {
		heading += strconv.FormatInt(seq, 10) + " "
	}
	f.Payload = make([]byte, 0, size)
	if len(heading) <= size {
		f.Payload = append(f.Payload, heading...)
	} else {
		f.Headers = map[string]string{headerHeading: strings.TrimSpace(heading)}
	}
	if left := size - len(f.Payload); left > 0 {
		from := rand.IntN(len(noise) - left)
		f.Payload = append(f.Payload, noise[from:from+left]...)
	}
	for i := range rand.IntN(8) - 4 {
		if f.Headers == nil {
			f.Headers = make(map[string]string, 3)
		}
		f.Headers[headerPrefix+string(rune('a'+i))] = strings.Repeat(fmt.Sprintf("%x", rand.Uint32()), 1+rand.IntN(4))
	}
	f.Sum = record.Sum(f.Payload, f.Headers)
	return f
}

// Message returns the message to enqueue.
func (f *Fact) Message() (postrider.Message, error) {
	id, err := postrider.ParseID(f.ID)
	return postrider.Message{
		ID: id, Type: f.Type(), Key: Spelling(f.Key), Topic: f.Topic, TenantID: Tenant(f.Key), Payload: f.Payload,
		ContentType: "application/octet-stream", Headers: f.Headers,
	}, err
}

// Type returns the type of the message.
func (f *Fact) Type() string {
	if f.Poison {
		return TypePoison
	}
	return TypeFact
}

// Read parses the heading of a message. A message that does not contain its number has 0.
func Read(payload []byte, headers Ours) (destination, key string, seq int64, err error) {
	heading := payload
	if text, ok := headers[headerHeading]; ok {
		heading = []byte(text + " ")
	}
	words := bytes.SplitN(heading, []byte{' '}, 4)
	if len(words) < 4 {
		return "", "", 0, fmt.Errorf("a payload of %d bytes is none of ours: %.40q", len(payload), payload)
	}
	if string(words[2]) != "?" {
		if seq, err = strconv.ParseInt(string(words[2]), 10, 64); err != nil {
			return "", "", 0, fmt.Errorf("heading %.40q: %w", heading, err)
		}
	}
	return string(words[0]), string(words[1]), seq, nil
}

// Ours collects the headers that the producer set. Their names may come back in another case.
type Ours map[string]string

// Foreign returns the number of a message that is not ours, and whether it is one.
func (o Ours) Foreign() (n int64, foreign bool) {
	text, foreign := o[MarkForeign]
	n, _ = strconv.ParseInt(text, 10, 64)
	return n, foreign
}

// OursOf returns the producer's headers among those of a received message.
func OursOf(headers map[string]string) (o Ours) {
	for name, value := range headers {
		o.Add(name, value)
	}
	return o
}

// Add adds a header if it is one of the producer's.
func (o *Ours) Add(name, value string) {
	if name = strings.ToLower(name); strings.HasPrefix(name, headerPrefix) {
		if *o == nil {
			*o = make(Ours, 3)
		}
		(*o)[name] = value
	}
}
