package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestDraw: what is drawn is well-formed, whatever the values and titles are, and has a place for each panel.
func TestDraw(t *testing.T) {
	text := Draw("a <title> & more", "s", 2, []Panel{
		{Title: "rising", Unit: "bytes", Points: []Point{{0, 1}, {1, 2_000_000}}, From: 0.5, Note: "<flat>"},
		{Title: "nothing"},
		{Title: "one", Points: []Point{{5, 0}}},
	})
	d := xml.NewDecoder(strings.NewReader(text))
	groups := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "g" {
			groups++
		}
	}
	if groups != 3 || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("%d panels in\n%s", groups, text)
	}
	if !strings.Contains(text, "2 MB") || !strings.Contains(text, "&lt;flat&gt;") {
		t.Errorf("words are missing in\n%s", text)
	}
}
