package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/postrider/postrider/admin/console/auth"
)

var failureType = reflect.TypeFor[Failure]()

// tidy documents that arrays are never null.
func tidy(doc *huma.OpenAPI) {
	seen := make(map[*huma.Schema]bool)
	var walk func(s *huma.Schema)
	walk = func(s *huma.Schema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		if s.Type == huma.TypeArray {
			s.Nullable = false
		}
		walk(s.Items)
		for _, p := range s.Properties {
			walk(p)
		}
	}
	for _, s := range doc.Components.Schemas.Map() {
		walk(s)
	}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Put, path.Delete} {
			if op == nil {
				continue
			}
			for _, r := range op.Responses {
				for _, m := range r.Content {
					walk(m.Schema)
				}
			}
		}
	}
}

// serveDocument serves the OpenAPI document to authenticated users.
func (s *Server) serveDocument() {
	asJSON, err := s.document.MarshalJSON()
	if err != nil {
		panic(err) // independent of requests: tests would find it
	}
	asYAML, err := s.document.YAML()
	if err != nil {
		panic(err)
	}
	for path, file := range map[string]struct {
		kind string
		text []byte
	}{
		"GET /api/openapi.json": {"application/vnd.oai.openapi+json", asJSON},
		"GET /api/openapi.yaml": {"application/vnd.oai.openapi", asYAML},
	} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if _, ok := auth.From(r.Context()); !ok {
				write(w, failf(http.StatusUnauthorized, "sign in", "you are not signed in"))
				return
			}
			w.Header().Set("Content-Type", file.kind)
			_, _ = w.Write(file.text) // the client may have disconnected
		})
	}
}
