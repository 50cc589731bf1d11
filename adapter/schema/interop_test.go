package schema_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
	"github.com/postrider/postrider/internal/need"
)

// Input and output of testdata/confluent.py.
type (
	forPython struct {
		URL      string         `json:"url"`
		Prefix   string         `json:"prefix"`
		Schema   string         `json:"schema"`
		Avro     string         `json:"avro"`
		Files    [][]byte       `json:"files"`
		Protobuf []protobufCase `json:"protobuf"`
	}
	protobufCase struct {
		Type    string          `json:"type"`
		Payload string          `json:"payload"`
		Value   json.RawMessage `json:"value,omitempty"` // in the answer only
	}
	fromPython struct {
		Value    map[string]any `json:"value"`
		Avro     string         `json:"avro"`
		Protobuf []protobufCase `json:"protobuf"`
	}
)

// TestConfluentPython lets Confluent's own serializers read our payloads, and reads theirs, with a
// real registry.
func TestConfluentPython(t *testing.T) {
	t.Parallel()
	python := need.Env(t, "POSTRIDER_TEST_CONFLUENT", "registry && dev/services install confluent")
	registerImports(t)
	q := forPython{URL: realURL(t), Prefix: unique(), Schema: orderV2}
	registry := newRegistry(t, schema.RegistryConfig{URL: q.URL, Subject: under(q.Prefix)})
	avro := newAvro(t, registry, orderV2)
	protobuf := schema.Protobuf{Registry: registry}

	note := "ring twice"
	order := OrderV2{ID: "42", Total: 1 << 40, Currency: "CHF", Note: &note}
	var m postrider.Message
	if err := avro.Encode(t.Context(), &m, order); err != nil {
		t.Fatal(err)
	}
	q.Avro = hex.EncodeToString(m.Payload)
	for _, f := range []protoreflect.FileDescriptor{timestamppb.File_google_protobuf_timestamp_proto, shop.File_shop_money_proto, shop.File_shop_order_proto} {
		b, err := proto.Marshal(protodesc.ToFileDescriptorProto(f))
		if err != nil {
			t.Fatal(err)
		}
		q.Files = append(q.Files, b)
	}
	values := []proto.Message{placed(), cancelled(), refund()}
	for _, v := range values {
		if err := protobuf.Encode(t.Context(), &m, v); err != nil {
			t.Fatal(err)
		}
		q.Protobuf = append(q.Protobuf, protobufCase{Type: string(v.ProtoReflect().Descriptor().FullName()), Payload: hex.EncodeToString(m.Payload)})
	}

	input, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "testdata/confluent.py")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var a fromPython
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}

	want := map[string]any{"id": "42", "total": float64(1 << 40), "currency": "CHF", "note": note}
	if !reflect.DeepEqual(a.Value, want) {
		t.Errorf("Avro: it has read %v, want %v", a.Value, want)
	}
	var got OrderV2
	if err := avro.Decode(t.Context(), &postrider.Message{Payload: unhex(t, a.Avro)}, &got); err != nil || !reflect.DeepEqual(got, order) {
		t.Errorf("Avro: we have read %+v, %v", got, err)
	}
	if len(a.Protobuf) != len(values) {
		t.Fatalf("got %d Protobuf messages", len(a.Protobuf))
	}
	for i, v := range values {
		theirs := v.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal(a.Protobuf[i].Value, theirs); err != nil || !proto.Equal(theirs, v) {
			t.Errorf("%T: it has read %s, %v", v, a.Protobuf[i].Value, err)
		}
		ours := v.ProtoReflect().New().Interface()
		payload := unhex(t, a.Protobuf[i].Payload)
		if err := protobuf.Decode(t.Context(), &postrider.Message{Payload: payload}, ours); err != nil || !proto.Equal(ours, v) {
			t.Errorf("%T: we have read %v, %v", v, ours, err)
		}
		if mine := unhex(t, q.Protobuf[i].Payload); !bytes.Equal(payload[5:], mine[5:]) {
			t.Errorf("%T: behind the ID it writes %x, we %x", v, payload[5:], mine[5:])
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
