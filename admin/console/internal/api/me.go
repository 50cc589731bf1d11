package api

import (
	"context"

	"github.com/postrider/postrider/admin/console/auth"
)

// Me is the authenticated user, and what the user can see.
type Me struct {
	Name      string    `json:"name"`
	Role      auth.Role `json:"role" enum:"viewer,operator,admin"`
	Payloads  bool      `json:"payloads" doc:"may see payloads and the values of headers"`
	Via       string    `json:"via" enum:"local,token,oidc,proxy"`
	Version   string    `json:"version"`
	Databases []string  `json:"databases"`
	Pages     []string  `json:"pages"`
	TraceURL  string    `json:"trace_url,omitempty" doc:"with {trace_id}"`
	CanLogout bool      `json:"can_logout"`
}

func (s *Server) me(ctx context.Context, d *database, _ *DB) (*Me, error) {
	who, _ := auth.From(ctx)
	me := &Me{
		Name: who.Name, Role: who.Role, Payloads: s.seesPayloads(ctx), Via: who.Via, Version: s.cfg.Version, Databases: []string{},
		Pages: d.pages(), TraceURL: s.cfg.TraceURL, CanLogout: who.Via == "token" || who.Via == "oidc",
	}
	for _, d := range s.databases {
		me.Databases = append(me.Databases, d.Name)
	}
	return me, nil
}

// pages returns the names of the pages that the database supports.
func (d *database) pages() []string {
	pages := []string{}
	for _, p := range []struct {
		there bool
		name  string
	}{
		{d.Gauges != nil, "overview"}, {d.Gauges != nil, "feeds"}, {d.Gauges != nil, "relays"}, {d.Log != nil, "messages"},
		{d.DeadLetters != nil, "dead"}, {d.DeadLetters != nil, "keys"}, {d.Gauges != nil, "consumers"}, {d.Replays != nil, "replays"},
		{d.Keys != nil, "idempotency"}, {d.Sagas != nil, "sagas"}, {d.Reconcilers != nil, "reconcilers"}, {d.Gauges != nil, "databases"},
		{d.Doctor != nil, "doctor"}, {d.Records != nil, "audit"},
	} {
		if p.there {
			pages = append(pages, p.name)
		}
	}
	return pages
}

// seesPayloads reports whether the user may see payloads and the values of headers.
func (s *Server) seesPayloads(ctx context.Context) bool {
	who, _ := auth.From(ctx)
	return who.Role.May(s.cfg.Payloads)
}
