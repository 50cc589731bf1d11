package console

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// shop is a business that sends orders, payments and shipments, with every kind of failure.
type shop struct {
	t            *testing.T
	db, billing  database
	nats, stream string
	partner      *partner
	healed       healed
	scene        scene
}

// scene is the data for the browser tests.
type scene struct {
	Console string            `json:"console"` // addresses
	Proxy   string            `json:"proxy"`
	Control string            `json:"control"`
	Tokens  map[string]string `json:"tokens"`
	IDs     map[string]string `json:"ids"`  // messages, by what is done to them
	Keys    map[string]string `json:"keys"` // blocked keys, likewise
	Odd     []odd             `json:"odd"`
	Big     map[string]string `json:"big"` // numbers in a payload, as they were written
}

type customer struct{ id, name, tenant, city string }

var customers = []customer{
	{"c-1041", "Nguyễn Thị Ánh Tuyết", "hanoi", "Hà Nội"},
	{"c-1042", "Trần Quốc Đạt", "saigon", "TP. Hồ Chí Minh"},
	{"c-1043", "Phạm Hữu Nghĩa", "danang", "Đà Nẵng"},
	{"c-2001", "王小明", "shanghai", "上海"},
	{"c-2002", "李秀英", "beijing", "北京"},
	{"c-2003", "欧阳娜娜", "chengdu", "成都"},
	{"c-3001", "Jürgen Groß", "berlin", "Berlin"},
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, db: newDatabase(t, "shop"), billing: newDatabase(t, "billing")}
	s.nats, s.stream = newStream(t)
	s.partner = newPartner(t, &s.healed)
	s.scene = scene{Tokens: tokens, IDs: map[string]string{}, Keys: map[string]string{}}
	return s
}

// send commits messages in one transaction.
func (s *shop) send(db database, messages ...postrider.Message) error {
	return pgx.BeginFunc(s.t.Context(), db.pool, func(tx pgx.Tx) error {
		return db.Outbox().Enqueue(s.t.Context(), tx, messages...)
	})
}

func (s *shop) mustSend(messages ...postrider.Message) {
	s.t.Helper()
	if err := s.send(s.db, messages...); err != nil {
		s.t.Fatal(err)
	}
}

// order returns the messages of a customer's order.
func order(n int) []postrider.Message {
	c := customers[rand.N(len(customers))]
	id := fmt.Sprintf("DH-%05d", n)
	correlation := "checkout-" + id
	total := 49_000 + rand.N(90)*10_000
	with := func(m *postrider.Message) {
		m.TenantID, m.CorrelationID = c.tenant, correlation
		m.Headers = map[string]string{"x-request-id": correlation, "authorization": "Bearer " + headerSecret, "x-region": "ap-southeast-1"}
	}
	return []postrider.Message{
		postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, map[string]any{
			"order": id, "customer": map[string]any{"id": c.id, "name": c.name, "city": c.city}, "total": total, "currency": "VND",
			"items": []map[string]any{{"sku": "AO-DAI-M", "qty": 1 + rand.N(3)}, {"sku": "茶-龙井-100", "qty": 2}},
		}, with),
		postrider.Event("payment.captured", postrider.Aggregate{Type: "order", ID: id}, map[string]any{
			"order": id, "amount": total, "card": map[string]any{"brand": "visa", "number": cardSecret}, "customer": c.name,
		}, with),
		postrider.Event("shipment.booked", postrider.Aggregate{Type: "shipment", ID: "VN" + id}, map[string]any{
			"order": id, "carrier": "GHN", "address": "12 Hàng Bông, " + c.city, "recipient": c.name,
		}, with),
	}
}

// Secrets that no user may see.
const (
	headerSecret = "canary-in-a-header"
	cardSecret   = "4111111111111111"
)

// produce places orders until the test ends.
func (s *shop) produce(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for n := 50_000; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.send(s.db, order(n)...); err != nil && ctx.Err() == nil {
				s.t.Errorf("placing an order: %v", err)
				return
			}
			_ = s.send(s.billing, postrider.Event("ledger.posted", postrider.Aggregate{Type: "account", ID: fmt.Sprint("acc-", n%20)}, map[string]any{"amount": n}))
		}
	}
}

// partner is the carriers' endpoint. It rejects what they cannot handle.
type partner struct {
	*httptest.Server
	received sync.Map // the last accepted body for each ID
}

func newPartner(t *testing.T, ok *healed) *partner {
	p := new(partner)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, status := string(body), http.StatusNoContent
		switch {
		case strings.Contains(text, `"carrier":"SF"`) && !ok.is("SF"):
			status = http.StatusNotFound
		case strings.Contains(text, `"carrier":"VNPost"`) && !ok.is("VNPost"):
			status = http.StatusForbidden
		case strings.Contains(text, `"address":""`) || strings.Contains(text, `"address": ""`):
			status = http.StatusUnprocessableEntity
		case strings.HasSuffix(r.URL.Path, "/shipment.customs"):
			status = http.StatusBadRequest
		case strings.HasSuffix(r.URL.Path, "/shipment.oversize"):
			status = http.StatusRequestEntityTooLarge
		}
		if status < 300 {
			p.received.Store(r.Header.Get("ce-id"), text)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(p.Close)
	return p
}
