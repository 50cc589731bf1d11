package api

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/redact"
	"github.com/postrider/postrider/store/feeds"
)

// Page is a part of a list.
type Page[T any] struct {
	Items  []T    `json:"items"`
	Cursor string `json:"cursor,omitempty" doc:"for the page that follows; absent on the last one"`
	// Until is set if a search has ended before the page was full.
	Until time.Time `json:"until,omitzero" doc:"nothing older was looked at; the cursor goes on from there"`
}

// Problem is a current problem. Kind and Params describe it for programs, Text in English.
type Problem struct {
	Kind     string         `json:"kind" enum:"foreign,no_feed,paused,no_relay,stalled,late,dead,blocked,failing,consumer_dead,consumer_blocked,saga_stuck,reconciler_failed,unreachable"`
	Severity string         `json:"severity" enum:"problem,warning"`
	Feed     string         `json:"feed,omitempty"`
	Consumer string         `json:"consumer,omitempty"`
	Text     string         `json:"text"`
	Params   map[string]any `json:"params"`
	Command  string         `json:"command" doc:"the CLI command that helps"`
	Page     string         `json:"page" doc:"where in the console it can be helped"`
}

// Payload is the redacted content of a message or a saga.
type Payload redact.View

// Filter selects messages. An absent field matches all.
type Filter struct {
	Feed     string         `json:"feed,omitempty"`
	Statuses []feeds.Status `json:"statuses,omitempty" enum:"pending,published,scheduled,retry,held,waiting,dead,parked"`
	ID       string         `json:"id,omitempty"`
	Type     string         `json:"type,omitempty"`
	Topic    string         `json:"topic,omitempty"`
	Key      string         `json:"key,omitempty"`
	Tenant   string         `json:"tenant,omitempty"`
	Since    time.Time      `json:"since,omitzero"`
	Until    time.Time      `json:"until,omitzero"`
	Error    string         `json:"error,omitempty"`
}

func (f *Filter) admin() (admin.Filter, error) {
	filter := admin.Filter{
		Feed: f.Feed, Statuses: f.Statuses, Type: f.Type, Topic: f.Topic, Key: f.Key, Tenant: f.Tenant, Since: f.Since, Until: f.Until,
		Error: f.Error,
	}
	if f.ID != "" {
		id, err := postrider.ParseID(f.ID)
		if err != nil {
			return filter, invalid("%q is not the ID of a message", f.ID)
		}
		filter.ID = id
	}
	return filter, nil
}

func filterOf(f *admin.Filter) Filter {
	out := Filter{
		Feed: f.Feed, Statuses: f.Statuses, Type: f.Type, Topic: f.Topic, Key: f.Key, Tenant: f.Tenant, Since: f.Since.UTC(),
		Until: f.Until.UTC(), Error: f.Error,
	}
	if !f.ID.IsZero() {
		out.ID = f.ID.String()
	}
	return out
}

// Done is the response to an action. After a dry run, Count is the number that the action would
// affect.
type Done struct {
	Count   int       `json:"count"`
	DryRun  bool      `json:"dry_run"`
	Sample  []DeadRow `json:"sample,omitempty"`
	Command string    `json:"command" doc:"the same as a CLI command; empty if there is none"`
	Job     *Replay   `json:"job,omitempty"`
}

// Reason is the optional body of an action without other parameters.
type Reason struct {
	Why string `json:"why,omitempty" maxLength:"1000" doc:"for the record"`
}

func (r *Reason) why() string {
	if r == nil {
		return ""
	}
	return r.Why
}
