package console_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
)

var update = flag.Bool("update", false, "write docs/api/openapi.yaml")

const written = "../../docs/api/openapi.yaml"

// TestDocument keeps the description in the repository as the console serves it.
func TestDocument(t *testing.T) {
	s := inMemory(t)
	served := s.document("yaml")
	if *update {
		if err := os.WriteFile(written, served, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(written); err != nil || string(kept) != string(served) {
		t.Errorf("%s is not what the console serves (%v); to write it: go test . -run TestDocument -update", written, err)
	}
}

func (s *scene) document(kind string) []byte {
	s.t.Helper()
	r := must(http.NewRequest("GET", s.url+"/api/openapi."+kind, nil))
	r.Header.Set("Authorization", "Bearer "+tokens[auth.Viewer])
	answer := must(http.DefaultClient.Do(r))
	defer func() { _ = answer.Body.Close() }()
	return must(io.ReadAll(answer.Body))
}

// TestAnswers asks for everything there is to see, and holds each answer against its schema.
func TestAnswers(t *testing.T) {
	s := onPostgres(t)
	s.enqueue(good(20)...)
	s.enqueue(bad(6)...)
	waits := bad(1)[0]
	waits.DeliverAfter = time.Now().Add(time.Hour)
	s.enqueue(waits)
	s.relay(6)
	var dead api.Page[api.DeadRow]
	s.wants(auth.Viewer, "GET", "/dead", nil, &dead)
	s.wants(auth.Admin, "POST", "/dead/act", dict{"act": "discard", "why": "test", "filter": dict{"id": dead.Items[0].ID}}, nil)
	s.wants(auth.Operator, "POST", "/replays", dict{"filter": dict{"feed": "default"}, "why": "test"}, nil)

	var doc dict
	if err := json.Unmarshal(s.document("json"), &doc); err != nil {
		t.Fatal(err)
	}
	v := validator{doc}
	fill := map[string]string{
		"/feeds/{name}": "/feeds/default", "/messages/{id}": "/messages/" + dead.Items[1].ID, "/sagas/{name}/{id}": "/sagas/book-trip/trip%2F1",
		"/replays/{id}": "/replays/1",
	}
	for _, r := range api.Routes() {
		if r.Method != http.MethodGet || strings.HasSuffix(r.Path, "/events") || strings.HasSuffix(r.Path, "/tail") {
			continue
		}
		path := r.Path
		if fill[path] != "" {
			path = fill[path]
		}
		for _, role := range []auth.Role{auth.Viewer, auth.Admin} {
			var answer any
			s.wants(role, "GET", path, nil, &answer)
			for _, wrong := range v.check(v.schemaOf(r.Path), answer, path) {
				t.Error(wrong)
			}
			if text := fmt.Sprint(answer); strings.Contains(text, "geheim") || strings.Contains(text, "4111 1111") {
				t.Errorf("%s tells a %s a secret: %s", path, role, text)
			} else if role == auth.Viewer && (strings.Contains(text, "north") || strings.Contains(text, "Lisbon")) {
				t.Errorf("%s tells a viewer what is in a header or payload: %s", path, text)
			}
			if list, ok := answer.([]any); ok && len(list) == 0 && path != "/keys" && path != "/consumers" && path != "/relays" {
				t.Errorf("%s is empty: nothing was tested", path)
			}
		}
	}
}

// validator knows the part of JSON Schema that the document uses.
type validator struct{ doc dict }

func (v *validator) schemaOf(path string) dict {
	at := v.doc
	for _, name := range []string{"paths", path, "get", "responses", "200", "content", "application/json", "schema"} {
		at = at[name].(dict)
	}
	return at
}

func (v *validator) check(schema dict, value any, path string) (wrong []string) {
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return v.check(v.doc["components"].(dict)["schemas"].(dict)[name].(dict), value, path)
	}
	if len(schema) == 0 {
		return nil
	}
	errorf := func(format string, args ...any) { wrong = append(wrong, path+": "+fmt.Sprintf(format, args...)) }
	kinds, ok := schema["type"].([]any)
	if !ok && schema["type"] != nil {
		kinds = []any{schema["type"]}
	}
	kind := map[bool]string{true: "null"}[value == nil]
	switch value := value.(type) {
	case string:
		kind = "string"
		if schema["format"] == "date-time" {
			if at, err := time.Parse(time.RFC3339, value); err != nil || at.IsZero() || !strings.HasSuffix(value, "Z") {
				errorf("%q is no time in UTC", value)
			}
		}
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
		if slices.Contains(kinds, any("integer")) && value == float64(int64(value)) {
			kind = "integer"
		}
	case []any:
		kind = "array"
		items, _ := schema["items"].(dict)
		for i, item := range value {
			wrong = append(wrong, v.check(items, item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case dict:
		kind = "object"
		properties, _ := schema["properties"].(dict)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := value[name.(string)]; !there {
				errorf("%s is missing", name)
			}
		}
		for name, item := range value {
			if of, known := properties[name].(dict); known {
				wrong = append(wrong, v.check(of, item, path+"."+name)...)
			} else if rest, open := schema["additionalProperties"].(dict); open {
				wrong = append(wrong, v.check(rest, item, path+"."+name)...)
			} else {
				errorf("%s is not described", name)
			}
		}
	}
	if len(kinds) > 0 && !slices.Contains(kinds, any(kind)) {
		errorf("is %s, not %v", kind, kinds)
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		errorf("%v is none of %v", value, enum)
	}
	return wrong
}
