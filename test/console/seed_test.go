package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

// odd is a text that must be shown verbatim, and the messages that contain it.
type odd struct {
	Text string `json:"text"`
	ID   string `json:"id"` // has it in every field
}

// oddTexts are texts that would have an effect if they were interpreted.
var oddTexts = []string{
	`<img src=x onerror="window.__pwned=1">`,
	`"><script>window.__pwned=2</script>`,
	`'"><svg/onload=window.__pwned=3>`,
	`javascript:window.__pwned=4//<a href="javascript:window.__pwned=4">x</a>`,
	`<iframe srcdoc="<script>parent.__pwned=5</script>"></iframe>`,
	`</title></textarea></style><img src=x onerror=window.__pwned=6>`,
	`{{constructor.constructor('window.__pwned=7')()}} ${window.__pwned=7}`,
	"odd invoice\u202egnp.exe\u2066 \u200bzero\u00ad",
}

// bigNumbers are numbers that JavaScript would round.
var bigNumbers = map[string]string{
	"big":   "9007199254740993",
	"huge":  "123456789012345678901234567890",
	"exact": "0.1000000000000000055511151231257827",
	"money": "1234567890123456789.10",
}

// seed fills the log: messages that are delivered, and some for each kind of failure.
func (s *shop) seed() {
	s.t.Helper()
	var all []postrider.Message
	for n := range 120 {
		all = append(all, order(10_000+n)...)
	}
	for n := range 15 {
		m := postrider.Event("order.reminder", postrider.Aggregate{Type: "order", ID: fmt.Sprintf("DH-%05d", 10_000+n)}, map[string]any{"remind": "payment"})
		m.TenantID, m.DeliverAfter = "hanoi", time.Now().Add(time.Duration(n+1)*time.Hour)
		all = append(all, m)
	}
	s.mustSend(all...)
	s.seedRefused()
	s.seedBlocked()
	if !pictures {
		s.seedOdd()
	}
	s.seedLedger()
}

// seedRefused enqueues messages that a carrier rejects, one at a time and in groups.
func (s *shop) seedRefused() {
	var all []postrider.Message
	shipment := func(kind, id, carrier, address string) postrider.Message {
		c := customers[len(all)%len(customers)]
		m := postrider.Event(kind, postrider.Aggregate{Type: "shipment", ID: id}, map[string]any{"carrier": carrier, "address": address, "recipient": c.name})
		m.TenantID, m.CorrelationID = c.tenant, "checkout-"+id
		m.Headers = map[string]string{"authorization": "Bearer " + headerSecret, "x-region": "ap-southeast-1", "x-request-id": "checkout-" + id}
		all = append(all, m)
		return m
	}
	for n := range 24 {
		shipment("shipment.booked", fmt.Sprintf("SF-%04d", n), "SF", "上海市黄浦区")
	}
	for n := range 9 {
		shipment("shipment.label", fmt.Sprintf("GHN-%04d", n), "GHN", "")
	}
	for n := range 6 {
		shipment("shipment.customs", fmt.Sprintf("CN-%04d", n), "EMS", "成都")
	}
	for _, what := range []string{"retry", "retry2", "park", "discard"} {
		s.scene.IDs[what] = shipment("shipment.booked", "VNP-"+what, "VNPost", "Huế").ID.String()
	}
	s.scene.IDs["edit"] = shipment("shipment.label", "GHN-edit", "GHN", "").ID.String()
	s.scene.IDs["oversize"] = shipment("shipment.oversize", "GHN-piano", "GHN", "Cần Thơ").ID.String()
	s.mustSend(all...)
}

// seedBlocked enqueues messages that the broker or the routes reject, with others of their keys
// behind them.
func (s *shop) seedBlocked() {
	var all []postrider.Message
	add := func(kind, id string, behind int, payload any) postrider.Message {
		head := postrider.Event(kind, postrider.Aggregate{Type: "account", ID: id}, payload)
		all = append(all, head)
		for n := range behind {
			all = append(all, postrider.Event("order.noted", postrider.Aggregate{Type: "account", ID: id}, map[string]any{"n": n}))
		}
		return head
	}
	for _, what := range []string{"retry", "skip", "park", "spare", "spare2"} {
		add("loyalty.earned", "KH-"+what, 3, map[string]any{"points": 120})
		s.scene.Keys[what] = "account/KH-" + what
	}
	s.scene.IDs["skip"] = add("loyalty.earned", "KH-skip-one", 2, map[string]any{"points": 80}).ID.String()
	for n := range 4 {
		add("order.imported", fmt.Sprintf("lô-hàng-%d", n), 5, map[string]any{"scan": strings.Repeat("扫描", 3000)})
	}
	for n := range 5 {
		add("legacy.import", fmt.Sprintf("legacy-%d", n), 1, map[string]any{"row": n})
	}
	s.mustSend(all...)
}

// seedOdd enqueues messages with odd texts, and one with large numbers.
func (s *shop) seedOdd() {
	for n, text := range oddTexts {
		m := postrider.Event(text, postrider.Aggregate{Type: "odd", ID: fmt.Sprint(n)}, json.RawMessage(literally(map[string]any{"odd": text, text: n})))
		m.Key, m.TenantID, m.CorrelationID, m.SchemaID = text, text, text, text
		m.Headers = map[string]string{"x-odd": text, "x-odd-" + fmt.Sprint(n): text}
		if err := s.send(s.db, m); err != nil {
			s.t.Fatalf("%q: %v", text, err)
		}
		s.scene.Odd = append(s.scene.Odd, odd{text, m.ID.String()})
		refused := postrider.Event("payment.refused", postrider.Aggregate{Type: "order", ID: fmt.Sprint("odd-", n)}, map[string]any{"reason": text})
		s.mustSend(refused)
	}
	var numbers []string
	for name, value := range bigNumbers {
		numbers = append(numbers, fmt.Sprintf("%q:%s", name, value))
	}
	big := postrider.Event("order.settled", postrider.Aggregate{Type: "order", ID: "DH-big"}, json.RawMessage("{"+strings.Join(numbers, ",")+"}"))
	s.mustSend(big)
	// The same as a dead letter, which can be edited.
	dead := postrider.Event("shipment.label", postrider.Aggregate{Type: "shipment", ID: "GHN-big"},
		json.RawMessage(`{"carrier":"GHN","address":"",`+strings.Join(numbers, ",")+"}"))
	s.mustSend(dead)
	s.scene.IDs["big"], s.scene.IDs["bigdead"], s.scene.Big = big.ID.String(), dead.ID.String(), bigNumbers
}

// literally encodes JSON without optional escapes.
func literally(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // to memory, a map of strings
	return b.Bytes()
}

// seedLedger fills the second database, and the table that a reconciler reads.
func (s *shop) seedLedger() {
	var all []postrider.Message
	for n := range 40 {
		all = append(all, postrider.Event("ledger.opened", postrider.Aggregate{Type: "account", ID: fmt.Sprint("acc-", n)}, map[string]any{"n": n}))
	}
	if err := s.send(s.billing, all...); err != nil {
		s.t.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE TABLE orders (id text PRIMARY KEY, total int NOT NULL, billed boolean NOT NULL, created_at timestamptz NOT NULL DEFAULT now())",
		"INSERT INTO orders SELECT 'DH-' || n, n * 1000, n % 10 > 0, now() - interval '1 hour' FROM generate_series(1, 40) n",
	} {
		if _, err := s.db.pool.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatal(err)
		}
	}
}
