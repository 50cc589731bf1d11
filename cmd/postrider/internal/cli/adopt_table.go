package cli

import (
	"slices"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
)

// tableOf converts a layout to its form in a file: the preset, and the differences from it. It is
// the inverse of layoutOf.
func tableOf(l table.Layout, preset string) config.Table {
	t := config.Table{Name: l.Table, Preset: preset, Columns: make(map[string]string), Status: make(map[string][]string)}
	known, _ := adopt.PresetNamed(preset)
	from := known.Layout
	for _, key := range table.ColumnKeys() {
		if l.Column(key) != from.Column(key) {
			t.Columns[key] = l.Column(key)
		}
	}
	if !slices.Equal(l.OrderBy, from.OrderBy) {
		t.OrderBy = l.OrderBy
	}
	s, was := &l.State, &from.State
	if l.State.Status != "" {
		if !slices.Equal(s.Pending, was.Pending) {
			t.Status["pending"] = s.Pending
		}
		for meaning, words := range map[string][2]string{
			"processing": {s.Processing, was.Processing}, "published": {s.Published, was.Published}, "failed": {s.Failed, was.Failed},
			"dead": {s.Dead, was.Dead},
		} {
			if words[0] != words[1] && (meaning != "published" || !s.Delete) {
				t.Status[meaning] = []string{words[0]}
			}
		}
	}
	t.Delete = s.Delete && !(was.Delete && s.Status == "" && s.PublishedAt == "")
	for target, pair := range map[*string][2]string{
		&t.DefaultType: {l.DefaultType, from.DefaultType}, &t.DefaultTopic: {l.DefaultTopic, from.DefaultTopic},
		&t.DefaultContentType: {l.DefaultContentType, from.DefaultContentType}, &t.WireID: {l.WireID, from.WireID},
	} {
		if pair[0] != pair[1] {
			*target = pair[0]
		}
	}
	return t
}
