package schema_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
	"github.com/postrider/postrider/internal/need"
)

// realURL returns the address of a real registry.
func realURL(t testing.TB) string {
	t.Helper()
	return need.Env(t, "POSTRIDER_TEST_REGISTRY", "registry")
}

// under returns a function that makes unique subjects for a test, because the registry keeps its
// data.
func under(prefix string) func(*postrider.Message, string) string {
	return func(_ *postrider.Message, record string) string { return prefix + record }
}

func unique() string { return "test-" + postrider.NewID().String() + "-" }

// ask sends a request that producers and consumers do not send, and returns the answer.
func ask(t testing.TB, method, path, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, realURL(t)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s: %s, %v", method, path, res.Status, text, err)
	}
	return text
}

// gate is a proxy in front of the real registry, with TLS, a password, and simulated outages.
type gate struct {
	*httptest.Server
	requests atomic.Int32
	down     atomic.Bool
}

func newGate(t *testing.T) (*gate, schema.RegistryConfig) {
	t.Helper()
	to, err := url.Parse(realURL(t))
	if err != nil {
		t.Fatal(err)
	}
	g := new(gate)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: quiet}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.requests.Add(1)
		user, password, _ := r.BasicAuth()
		switch {
		case g.down.Load():
			http.Error(w, "down", http.StatusServiceUnavailable)
		case user != "key" || password != secret:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			r.Header.Del("Authorization")
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(g.Close)
	pool := x509.NewCertPool()
	pool.AddCert(g.Certificate())
	return g, schema.RegistryConfig{
		URL: g.URL, User: "key", Password: secret, TLS: &tls.Config{RootCAs: pool}, Subject: under(unique()),
	}
}

func TestRealAvro(t *testing.T) {
	t.Parallel()
	g, cfg := newGate(t)
	writer := newAvro(t, newRegistry(t, cfg), orderV1)
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)

	g.down.Store(true)
	before := m
	if err := writer.Encode(t.Context(), &m, Order{"42", 700}); postrider.ClassOf(err) != postrider.ClassUnavailable || !reflect.DeepEqual(m, before) {
		t.Fatalf("while the registry is down: got %v, %+v", err, m)
	}
	g.down.Store(false)
	g.requests.Store(0)
	for range 50 {
		if err := writer.Encode(t.Context(), &m, Order{"42", 700}); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.requests.Load(); n != 1 {
		t.Errorf("%d requests to encode 50 messages", n)
	}
	id := binary.BigEndian.Uint32(m.Payload[1:])
	if m.Payload[0] != 0 || m.SchemaID != fmt.Sprint(id) || m.ContentType != "application/avro" || hex.EncodeToString(m.Payload[5:]) != "043432f80a" {
		t.Errorf("got %x with ID %s", m.Payload, m.SchemaID)
	}

	reader := newAvro(t, newRegistry(t, cfg), orderV2)
	want := OrderV2{ID: "42", Total: 700, Currency: "EUR"}
	decode := func() error {
		var got *OrderV2
		err := reader.Decode(t.Context(), &m, &got)
		if err == nil && !reflect.DeepEqual(*got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		return err
	}
	g.down.Store(true)
	if err := decode(); postrider.ClassOf(err) != postrider.ClassUnavailable {
		t.Errorf("while the registry is down: got %v", err)
	}
	g.down.Store(false) // the failure is not cached
	g.requests.Store(0)
	for range 50 {
		if err := decode(); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.requests.Load(); n != 1 {
		t.Errorf("%d requests to decode 50 messages", n)
	}
	g.down.Store(true) // cached schemas need no registry
	if err := decode(); err != nil {
		t.Error(err)
	}
}

// TestRealRefusals checks that decisions of the registry are permanent errors.
func TestRealRefusals(t *testing.T) {
	t.Parallel()
	registerImports(t)
	prefix := unique()
	registry := newRegistry(t, schema.RegistryConfig{URL: realURL(t), Subject: under(prefix)})
	v1, v2 := newAvro(t, registry, orderV1), newAvro(t, registry, orderV2)
	readOnly := newAvro(t, newRegistry(t, schema.RegistryConfig{URL: realURL(t), Subject: under(prefix), ReadOnly: true}), orderV1)

	permanent := func(what string, err error) {
		t.Helper()
		if postrider.ClassOf(err) != postrider.ClassPermanent {
			t.Errorf("%s: got %v, which is %s", what, err, postrider.ClassOf(err))
		}
	}
	var m postrider.Message
	permanent("an unknown schema", v1.Decode(t.Context(), &postrider.Message{Payload: []byte("\x00\x7f\xff\xff\xff\x02a\x02")}, new(Order)))
	permanent("a subject that is not registered", readOnly.Encode(t.Context(), &m, Order{"42", 700}))
	if err := v1.Encode(t.Context(), &m, Order{"42", 700}); err != nil {
		t.Fatal(err)
	}
	id := m.SchemaID
	if err := readOnly.Encode(t.Context(), &m, Order{"42", 700}); err != nil || m.SchemaID != id {
		t.Errorf("looked up: got ID %s, %v, want %s", m.SchemaID, err, id)
	}

	ask(t, http.MethodPut, "/config/"+prefix+"shop.Order", `{"compatibility":"BACKWARD"}`)
	if err := v2.Encode(t.Context(), &m, OrderV2{ID: "42"}); err != nil {
		t.Errorf("a compatible schema: %v", err)
	}
	type heavy struct {
		ID     string  `avro:"id"`
		Weight float64 `avro:"weight"`
	}
	other := newAvroOf(t, schema.AvroConfig{Registry: registry, Types: []schema.AvroType{{Value: heavy{}, Schema: incompatible}}})
	permanent("an incompatible schema", other.Encode(t.Context(), &m, heavy{"42", 1}))

	if err := (schema.Protobuf{Registry: registry}).Encode(t.Context(), &m, placed()); err != nil {
		t.Fatal(err)
	}
	permanent("a schema of another kind", v1.Decode(t.Context(), &m, new(Order)))

	// No default can fill in these fields: the reader needs another schema.
	if err := v1.Encode(t.Context(), &m, Order{"42", 700}); err != nil {
		t.Fatal(err)
	}
	if err := other.Decode(t.Context(), &m, new(heavy)); err == nil || postrider.ClassOf(err) == postrider.ClassUnavailable {
		t.Errorf("a schema that does not resolve: got %v", err)
	}

	away := newRegistry(t, schema.RegistryConfig{URL: strings.TrimSuffix(realURL(t), "v7") + "v0"})
	if err := newAvro(t, away, orderV1).Encode(t.Context(), &m, Order{"42", 700}); postrider.ClassOf(err) != postrider.ClassUnavailable {
		t.Errorf("a wrong path: got %v, which is %s", err, postrider.ClassOf(err))
	}
}

// TestRealReferences reads payloads whose schema spans two subjects.
func TestRealReferences(t *testing.T) {
	t.Parallel()
	prefix := unique()
	register := func(subject string, document any) {
		body, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, http.MethodPost, "/subjects/"+subject+"/versions", string(body))
	}
	type object map[string]any
	const money = `{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"int"}]}`
	const order = `{"type":"record","name":"Bill","namespace":"shop","fields":[{"name":"id","type":"string"},{"name":"total","type":"shop.Money"}]}`
	register(prefix+"money", object{"schema": money})
	register(prefix+"bill", object{"schema": order, "references": []object{{"name": "shop.Money", "subject": prefix + "money", "version": 1}}})
	var registered struct{ ID uint32 }
	if err := json.Unmarshal(ask(t, http.MethodGet, "/subjects/"+prefix+"bill/versions/1", ""), &registered); err != nil || registered.ID == 0 {
		t.Fatal(err)
	}

	type Money struct {
		Cents int64 `avro:"cents"`
	}
	type Bill struct {
		ID    string `avro:"id"`
		Total Money  `avro:"total"`
	}
	whole := strings.Replace(strings.Replace(order, `"shop.Money"`, money, 1), `"int"`, `"long"`, 1)
	a := newAvroOf(t, schema.AvroConfig{
		Registry: newRegistry(t, schema.RegistryConfig{URL: realURL(t)}), Types: []schema.AvroType{{Value: Bill{}, Schema: whole}},
	})
	payload := append(binary.BigEndian.AppendUint32([]byte{0}, registered.ID), "\x0442\xf8\x0a"...)
	var got Bill
	if err := a.Decode(t.Context(), &postrider.Message{Payload: payload}, &got); err != nil || got != (Bill{"42", Money{700}}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// importsOnce registers the imports of order.proto. Their subject is their path, which all tests
// share.
var importsOnce sync.Once

func registerImports(t *testing.T) {
	t.Helper()
	importsOnce.Do(func() {
		var m postrider.Message
		registry := newRegistry(t, schema.RegistryConfig{URL: realURL(t), Subject: under(unique())})
		if err := (schema.Protobuf{Registry: registry}).Encode(t.Context(), &m, placed()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRealTogether starts all processes of a service at once, each registering the same new schema.
func TestRealTogether(t *testing.T) {
	t.Parallel()
	prefix := unique()
	type result struct {
		id  string
		err error
	}
	results := make(chan result)
	const processes = 8
	for range processes {
		a := newAvro(t, newRegistry(t, schema.RegistryConfig{URL: realURL(t), Subject: under(prefix)}), orderV1)
		go func() {
			var m postrider.Message
			err := a.Encode(t.Context(), &m, Order{"42", 700})
			results <- result{m.SchemaID, err}
		}()
	}
	first := <-results
	for range processes - 1 {
		if r := <-results; first.err != nil || r != first {
			t.Errorf("got %v and %v", first, r)
		}
	}
}

func TestRealProtobuf(t *testing.T) {
	t.Parallel()
	registerImports(t)
	g, cfg := newGate(t)
	codec := schema.Protobuf{Registry: newRegistry(t, cfg)}
	encode := func(value proto.Message) postrider.Message {
		t.Helper()
		m := postrider.Event("order", postrider.Aggregate{Type: "order", ID: "42"}, nil)
		if err := codec.Encode(t.Context(), &m, value); err != nil {
			t.Fatal(err)
		}
		if id := strconv.Itoa(int(binary.BigEndian.Uint32(m.Payload[1:]))); m.SchemaID != id || m.ContentType != "application/protobuf" {
			t.Errorf("got %x with ID %s", m.Payload, m.SchemaID)
		}
		return m
	}
	first := encode(placed())
	n := g.requests.Load() // the imported file, its version, the file
	if n != 3 {
		t.Errorf("%d requests to register two files", n)
	}
	for range 50 {
		encode(placed())
	}
	if again := g.requests.Load(); again != n {
		t.Errorf("%d requests to encode 50 messages", again-n)
	}
	cfg.ReadOnly = true
	var found postrider.Message
	if err := (schema.Protobuf{Registry: newRegistry(t, cfg)}).Encode(t.Context(), &found, placed()); err != nil || found.SchemaID != first.SchemaID {
		t.Errorf("looked up: got ID %s, %v, want %s", found.SchemaID, err, first.SchemaID)
	}
	for _, c := range []struct {
		m       postrider.Message
		value   proto.Message
		indexes string
	}{
		{first, placed(), "\x00"},
		{encode(cancelled()), cancelled(), "\x02\x02"},
		{encode(refund()), refund(), "\x04\x02\x00"},
	} {
		if !bytes.HasPrefix(c.m.Payload[5:], []byte(c.indexes)) {
			t.Errorf("%T: got %x, want the indexes %x", c.value, c.m.Payload, c.indexes)
		}
		got := c.value.ProtoReflect().New().Interface()
		if err := (schema.Protobuf{}).Decode(t.Context(), &c.m, got); err != nil || !proto.Equal(got, c.value) {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func cancelled() *shop.OrderCancelled { return &shop.OrderCancelled{Id: "42", Reason: "no pony"} }
func refund() *shop.OrderCancelled_Refund {
	return &shop.OrderCancelled_Refund{Id: "42", Amount: &shop.Money{Currency: "EUR", Cents: 1999}}
}

// TestManyAtOnce checks that a consumer that starts with a hundred messages queries their schema
// once.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	g, cfg := newGate(t)
	a := newAvro(t, newRegistry(t, cfg), orderV1)
	var m postrider.Message
	if err := a.Encode(t.Context(), &m, Order{"42", 700}); err != nil {
		t.Fatal(err)
	}
	g.requests.Store(0)
	errs := make(chan error)
	for range 100 {
		go func() { errs <- a.Decode(t.Context(), &m, new(Order)) }()
	}
	for range 100 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := g.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}
