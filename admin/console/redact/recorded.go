package redact

import "maps"

// Recorded redacts the state of a message in an audit record. If visible is false, it hides payload
// and header values.
func (r *Rules) Recorded(kept map[string]any, visible bool) map[string]any {
	kept = maps.Clone(kept)
	if text, ok := kept["payload"].(string); ok && visible {
		kind, _ := kept["content_type"].(string)
		kept["payload"] = r.Payload(kind, []byte(text), true).Text
	} else if _, there := kept["payload"]; there {
		kept["payload"] = Hidden
	}
	if _, there := kept["headers"]; there {
		headers, _ := kept["headers"].(map[string]any)
		texts := make(map[string]string, len(headers))
		for name, value := range headers {
			texts[name], _ = value.(string)
		}
		kept["headers"] = r.Headers(texts, visible)
	}
	return kept
}
