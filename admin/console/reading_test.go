package console_test

import (
	"slices"
	"testing"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
)

// TestReadingAPayloadIsRecorded checks that the record names everyone who was shown a payload: once, however often a page asks again.
func TestReadingAPayloadIsRecorded(t *testing.T) {
	s := onPostgres(t)
	if err := s.db.Feeds.AddFeed(t.Context(), admin.By{Who: "test"}, "default", true); err != nil {
		t.Fatal(err)
	}
	msgs := good(1)
	s.enqueue(msgs...)
	path := "/messages/" + msgs[0].ID.String()
	var journey api.Journey
	for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Operator} {
		s.wants(role, "GET", path, nil, &journey)
		if shown := journey.Message.Payload.Text != ""; shown != (role == auth.Operator) {
			t.Errorf("%s: the payload is shown: %v", role, shown)
		}
	}
	entries := must(s.db.Records.Audit(t.Context(), "", 0, 100))
	entries = slices.DeleteFunc(entries, func(e admin.Entry) bool { return e.Action != "reveal" })
	if len(entries) != 1 || entries[0].Target["id"] != msgs[0].ID.String() || entries[0].Why != "opened in the console" {
		t.Errorf("on the record: %+v", entries)
	}
}
