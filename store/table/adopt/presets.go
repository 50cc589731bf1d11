package adopt

import "github.com/postrider/postrider/store/table"

// Preset is the layout of a table that many have.
type Preset struct {
	Name string `json:"name"`
	Doc  string `json:"doc"` // one line
	// Layout has the table's usual name; [Propose] adapts it to what a table has.
	Layout table.Layout `json:"-"`

	known []string // columns by which a table of this kind is recognised
	not   []string // columns that it does not have
}

// PresetNamed returns the preset with the name.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// Presets returns the layouts that are known. A table may fit several: the first is the closest.
func Presets() []Preset {
	return []Preset{
		watermill(), openOutbox(), debezium(), prisma(), integrationEvents(), bento(), eventsBigserial(), eventsUUID(),
	}
}

func eventsBigserial() Preset {
	return Preset{
		Name: "events-bigserial", Doc: "outbox_events with a growing ID, routing_key, and pending/processing/published/failed",
		known: []string{"id", "routing_key", "payload", "status", "available_at"},
		Layout: table.Layout{
			Table: "outbox_events", ID: "id", OrderBy: []string{"id"}, WireID: "outbox-{database}-{id}",
			Columns: table.Columns{
				Type: "event_type", AggregateType: "aggregate_type", AggregateID: "aggregate_id", RoutingKey: "routing_key",
				Payload: "payload", CreatedAt: "created_at", DeliverAfter: "available_at",
			},
			State: table.State{
				Status: "status", Pending: []string{"pending"}, Processing: "processing", Published: "published", Dead: "failed",
				Attempts: "attempts", NextAttempt: "available_at", LastError: "last_error", PublishedAt: "published_at",
			},
		},
	}
}

func prisma() Preset {
	return Preset{
		Name: "prisma", Doc: "Outbox of a Node service with Prisma: eventType, and processedAt, which is null while a row waits",
		known: []string{"id", "eventType", "payload", "processedAt"},
		Layout: table.Layout{
			Table: "Outbox", ID: "id", OrderBy: []string{"createdAt", "id"},
			Columns: table.Columns{
				Type: "eventType", AggregateType: "aggregateType", AggregateID: "aggregateId", Payload: "payload", CreatedAt: "createdAt",
			},
			State: table.State{PublishedAt: "processedAt", Attempts: "attempts", LastError: "lastError"},
		},
	}
}

func eventsUUID() Preset {
	return Preset{
		Name: "events-uuid", Doc: "outbox_events with a UUID, retry_count, and PENDING/PUBLISHED/FAILED",
		known: []string{"id", "event_type", "payload", "status", "retry_count"},
		Layout: table.Layout{
			Table: "outbox_events", ID: "id", OrderBy: []string{"created_at", "id"},
			Columns: table.Columns{Type: "event_type", AggregateID: "aggregate_id", Payload: "payload", CreatedAt: "created_at"},
			State: table.State{
				Status: "status", Pending: []string{"PENDING"}, Published: "PUBLISHED", Dead: "FAILED",
				Attempts: "retry_count", LastError: "error_message", PublishedAt: "published_at",
			},
		},
	}
}

func integrationEvents() Preset {
	return Preset{
		Name: "integration-events", Doc: "integration_event_outbox with dedup_key, priority and deliver_after",
		known: []string{"id", "payload", "dedup_key", "deliver_after", "status"},
		Layout: table.Layout{
			Table: "integration_event_outbox", ID: "id", OrderBy: []string{"id"},
			Columns: table.Columns{
				Type: "type", AggregateType: "aggregate_type", AggregateID: "aggregate_id", SchemaVersion: "schema_version",
				Payload: "payload", Headers: "metadata", DedupKey: "dedup_key", Priority: "priority", DeliverAfter: "deliver_after",
				OccurredAt: "occurred_at",
			},
			State: table.State{
				Status: "status", Pending: []string{"pending"}, Processing: "processing", Published: "published", Dead: "failed",
				Attempts: "attempts", NextAttempt: "next_attempt_at", LastError: "last_error", PublishedAt: "published_at",
			},
		},
	}
}

func bento() Preset {
	return Preset{
		Name: "bento", Doc: "Bento's outbox with a tenant, a topic, retry_after, and NEW/PUBLISHING/SENT/FAILED/DEAD",
		known: []string{"id", "topic", "payload", "status", "retry_after"},
		Layout: table.Layout{
			Table: "outbox", ID: "id", OrderBy: []string{"created_at", "id"},
			Columns: table.Columns{
				Type: "type", AggregateID: "aggregate_id", Topic: "topic", TenantID: "tenant_id", Payload: "payload", Headers: "headers",
				CreatedAt: "created_at", DeliverAfter: "retry_after",
			},
			State: table.State{
				Status: "status", Pending: []string{"NEW"}, Processing: "PUBLISHING", Published: "SENT", Failed: "FAILED", Dead: "DEAD",
				Attempts: "attempts", NextAttempt: "retry_after", LastError: "last_error", PublishedAt: "sent_at",
			},
		},
	}
}

func debezium() Preset {
	return Preset{
		Name: "debezium", Doc: "the columns of Debezium's outbox event router; delivered rows are deleted",
		known: []string{"id", "aggregatetype", "aggregateid", "type", "payload"},
		not:   []string{"status"},
		Layout: table.Layout{
			Table: "outbox", ID: "id", OrderBy: []string{"id"},
			Columns: table.Columns{AggregateType: "aggregatetype", AggregateID: "aggregateid", Type: "type", Payload: "payload"},
			State:   table.State{Delete: true},
		},
	}
}

func watermill() Preset {
	return Preset{
		Name: "watermill", Doc: "a topic of Watermill's SQL publisher, watermill_TOPIC; delivered rows are deleted",
		known: []string{"offset", "uuid", "payload", "metadata"},
		not:   []string{"status"},
		Layout: table.Layout{
			Table: "watermill_events", ID: "offset", OrderBy: []string{"offset"}, DefaultType: "events", DefaultTopic: "events",
			Columns: table.Columns{MessageID: "uuid", Payload: "payload", Headers: "metadata", CreatedAt: "created_at"},
			State:   table.State{Delete: true},
		},
	}
}

func openOutbox() Preset {
	return Preset{
		Name: "open-outbox", Doc: "openoutbox_events of the Open Outbox schema, with partition_key and PENDING/DELIVERING/DELIVERED/DEAD",
		known: []string{"event_id", "event_type", "partition_key", "payload", "status"},
		Layout: table.Layout{
			Table: "openoutbox_events", ID: "event_id", OrderBy: []string{"created_at", "event_id"},
			Columns: table.Columns{
				Type: "event_type", Key: "partition_key", Payload: "payload", Headers: "headers", CreatedAt: "created_at",
				DeliverAfter: "available_at",
			},
			State: table.State{
				Status: "status", Pending: []string{"PENDING"}, Processing: "DELIVERING", Published: "DELIVERED", Dead: "DEAD",
				Attempts: "attempts", NextAttempt: "available_at", LastError: "last_error", ClaimedAt: "locked_at", ClaimedBy: "locked_by",
				PublishedAt: "delivered_at", UpdatedAt: "updated_at",
			},
		},
	}
}
