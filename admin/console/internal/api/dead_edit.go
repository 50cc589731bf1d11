package api

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
)

// DeadEdit is a request to change a message and send it. Absent fields stay as they are.
type DeadEdit struct {
	DB
	Feed string `path:"feed"`
	ID   string `path:"id"`
	Body struct {
		Type        *string           `json:"type,omitempty"`
		Topic       *string           `json:"topic,omitempty"`
		RoutingKey  *string           `json:"routing_key,omitempty"`
		ContentType *string           `json:"content_type,omitempty"`
		Headers     map[string]string `json:"headers,omitempty" doc:"all of them"`
		Payload     *string           `json:"payload,omitempty" doc:"as text"`
		Why         string            `json:"why,omitempty" maxLength:"1000"`
	}
}

func (s *Server) deadEdit(ctx context.Context, d *database, in *DeadEdit) (*Done, error) {
	deadLetters, err := has(d.DeadLetters, "dead letters")
	if err != nil {
		return nil, err
	}
	id, err := postrider.ParseID(in.ID)
	if err != nil {
		return nil, invalid("%q is not the ID of a message", in.ID)
	}
	found, err := deadLetters.List(ctx, admin.Filter{Feed: in.Feed, ID: id, Statuses: admin.Discard.From()}, nil, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, failf(http.StatusNotFound, d.command("dead ls", whose(in.Feed)...), "message %s is neither dead nor parked", id)
	}
	edited, flags, err := s.edited(ctx, d, &found[0].Message, in)
	if err != nil {
		return nil, err
	}
	if err := edited.Validate(); err != nil {
		return nil, err
	}
	if err := deadLetters.Edit(ctx, by(ctx, in.Body.Why), in.Feed, id, edited); err != nil {
		return nil, err
	}
	s.acted(ctx, d, "edited", in.Body.Why, "feed", in.Feed, "id", id)
	flags = slices.Concat([]string{id.String()}, whose(in.Feed), flags, reason(in.Body.Why))
	return &Done{Count: 1, Command: d.command("dead edit", flags...)}, nil
}

// edited returns the message with its changes, and the flags for the same changes on the command
// line. It refuses to overwrite values that were redacted for the user.
func (s *Server) edited(ctx context.Context, d *database, m *postrider.Message, in *DeadEdit) (out postrider.Message, flags []string, err error) {
	out = *m
	set := func(to *string, value *string, flag string) {
		if value != nil && *value != *to {
			*to = *value
			if flag != "" {
				flags = append(flags, flag, *value)
			}
		}
	}
	set(&out.Type, in.Body.Type, "--type")
	set(&out.Topic, in.Body.Topic, "--topic")
	set(&out.RoutingKey, in.Body.RoutingKey, "")
	set(&out.ContentType, in.Body.ContentType, "")
	visible := s.seesPayloads(ctx)
	elsewhere := "edit it where it is fully visible: " + d.command("dead edit", m.ID.String())
	if in.Body.Headers != nil && !maps.Equal(in.Body.Headers, m.Headers) {
		shown := s.cfg.Redact.Headers(m.Headers, visible)
		out.Headers = maps.Clone(in.Body.Headers)
		for name, value := range shown {
			if now, there := out.Headers[name]; there && now == value {
				out.Headers[name] = m.Headers[name] // redacted in the request, so the user has not changed it
			}
		}
		for _, name := range slices.Sorted(maps.Keys(out.Headers)) {
			if out.Headers[name] != m.Headers[name] {
				flags = append(flags, "--header", name+"="+out.Headers[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			if _, stays := out.Headers[name]; !stays {
				flags = append(flags, "--header", name+"=")
			}
		}
	}
	if in.Body.Payload != nil {
		view := s.cfg.Redact.Payload(m.ContentType, m.Payload, visible)
		if view.Hidden || len(view.Redacted) > 0 || view.Truncated || view.Kind == "binary" {
			return out, nil, failf(http.StatusConflict, elsewhere, "the payload is not fully visible here, so it cannot be replaced")
		}
		if text := *in.Body.Payload; text != view.Text {
			out.Payload = []byte(text)
			flags = append(flags, "--payload", "FILE")
		}
	}
	return out, flags, nil
}
