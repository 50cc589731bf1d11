package adopt

import (
	"strings"

	"github.com/postrider/postrider/store/table/internal/catalog"
)

// fits reports whether a column can hold what a key means.
func fits(key string, c *catalog.Column) bool {
	switch key {
	case "created_at", "occurred_at", "deliver_after", "next_attempt", "claimed_at", "published_at", "updated_at":
		return catalog.IsTime(c) && !(c.Generated && key != "created_at" && key != "occurred_at")
	case "attempts":
		return catalog.IsInteger(c) && !c.Generated
	case "schema_version", "priority":
		return catalog.IsInteger(c)
	case "status":
		return catalog.LooksLikeStatus(c) && !c.Generated
	case "last_error":
		return catalog.IsText(c) && !c.Generated
	case "claimed_by":
		return (catalog.IsText(c) || catalog.IsUUID(c)) && !c.Generated
	case "payload":
		return catalog.IsText(c) || catalog.IsJSON(c) || catalog.IsBytes(c)
	case "headers":
		return catalog.IsText(c) || catalog.IsJSON(c)
	case "id":
		return catalog.IsInteger(c) || catalog.IsUUID(c) || catalog.IsText(c) || catalog.IsBytes(c)
	case "message_id":
		return catalog.IsUUID(c) || catalog.IsText(c)
	case "type", "topic", "routing_key", "content_type":
		return catalog.IsText(c) || c.Type == "enum"
	}
	return catalog.IsText(c) || catalog.IsInteger(c) || catalog.IsUUID(c) || c.Type == "enum"
}

// hasZone reports whether a time means the same in every session.
func hasZone(c *catalog.Column) bool { return strings.Contains(c.Type, "with time zone") }

// isCamel reports whether a table writes its columns like createdAt.
func isCamel(t *catalog.Table) bool {
	for _, c := range t.Columns {
		if strings.Contains(c.Name, "_") {
			return false
		}
		if strings.ToLower(c.Name[:1]) == c.Name[:1] && strings.ToLower(c.Name) != c.Name {
			return true
		}
	}
	return false
}
