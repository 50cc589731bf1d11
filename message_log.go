package postrider

import "log/slog"

// LogValue implements [slog.LogValuer]. It identifies the message and never contains its payload or header values. With an
// empty key, as in slog.Any("", m), the fields are inlined.
func (m Message) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("id", m.ID.String()), slog.String("type", m.Type)}
	for _, f := range []struct{ name, value string }{
		{"key", m.OrderKey()},
		{"aggregate_type", m.AggregateType},
		{"aggregate_id", m.AggregateID},
		{"topic", m.Topic},
		{"tenant", m.TenantID},
		{"dedup_key", m.DedupKey},
		{"correlation_id", m.CorrelationID},
	} {
		if f.value != "" {
			attrs = append(attrs, slog.String(f.name, f.value))
		}
	}
	return slog.GroupValue(attrs...)
}
