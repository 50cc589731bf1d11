package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin"
)

// AuditEntry is a record of the audit log.
type AuditEntry struct {
	N      int64          `json:"n"`
	At     time.Time      `json:"at"`
	Who    string         `json:"who"`
	Login  string         `json:"login,omitempty"`
	Action string         `json:"action"`
	Why    string         `json:"why,omitempty"`
	Feed   string         `json:"feed,omitempty"`
	Count  int            `json:"count"`
	Target map[string]any `json:"target,omitempty"`
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
}

// Audit is a request for a page of the audit log.
type Audit struct {
	DB
	Feed string `query:"feed"`
	Paging
}

func (s *Server) audit(ctx context.Context, d *database, in *Audit) (*Page[AuditEntry], error) {
	records, err := has(d.Records, "records")
	if err != nil {
		return nil, err
	}
	at, err := placeIn("audit", in.Cursor, 0)
	if err != nil {
		return nil, err
	}
	var before int64
	if at != nil {
		before = at.N
	}
	found, err := records.Audit(ctx, in.Feed, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page := &Page[AuditEntry]{Items: []AuditEntry{}}
	for i := range found[:min(len(found), in.Limit)] {
		page.Items = append(page.Items, s.entryOf(ctx, &found[i]))
	}
	if len(found) > in.Limit {
		page.Cursor = place{List: "audit", N: found[in.Limit-1].N}.cursor()
	}
	return page, nil
}

func (s *Server) entryOf(ctx context.Context, e *admin.Entry) AuditEntry {
	return AuditEntry{
		e.N, e.At.UTC(), e.Who, e.Login, e.Action, e.Why, e.Feed, e.Count, e.Target, s.recorded(ctx, e.Before), s.recorded(ctx, e.After),
	}
}

// recorded redacts the content of a record for the reader.
func (s *Server) recorded(ctx context.Context, kept map[string]any) map[string]any {
	kept = s.cfg.Redact.Recorded(kept, s.seesPayloads(ctx))
	if text, ok := kept["last_error"].(string); ok {
		kept["last_error"] = s.shown(text)
	}
	return kept
}
