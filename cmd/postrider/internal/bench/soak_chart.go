package bench

import (
	"fmt"

	"github.com/postrider/postrider/cmd/postrider/internal/chart"
)

// Chart draws the samples, with the evaluated part shaded.
func (r *SoakResult) Chart(plan *SoakPlan) string {
	line := func(value func(*SoakSample) float64) []chart.Point {
		points := make([]chart.Point, len(r.Samples))
		for i := range r.Samples {
			points[i] = chart.Point{X: r.Samples[i].At, Y: value(&r.Samples[i])}
		}
		return points
	}
	panels := []chart.Panel{{Title: "effects a second", Points: line(func(s *SoakSample) float64 { return s.Handled })}}
	for i, s := range soakSeries(plan) {
		t := r.Trends[i]
		p := chart.Panel{Title: s.name, Unit: s.unit, Points: line(s.value), Note: "not evaluated"}
		if t.Why == "" {
			p.From, p.Note = t.From, "grows"
		}
		if t.Flat {
			p.Note = "flat"
		}
		panels = append(panels, p)
	}
	title := fmt.Sprintf("%.0f s at %d messages/s, %.0f %% of the full rate", r.Seconds, r.Rate, r.Load*100)
	return chart.Draw(title, "s", 3, panels)
}
