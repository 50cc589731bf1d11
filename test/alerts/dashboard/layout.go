package dashboard

import "strings"

// row is a question and the panels that answer it.
type row struct {
	title     string
	panels    []ask
	collapsed bool
}

// ask describes one panel.
type ask struct {
	kind     string // stat, timeseries or table
	title    string
	about    string
	unit     string
	queries  []query
	warn     float64 // 0: no threshold
	critical float64 // 0: no second threshold
	stacked  bool
	runbook  string // a page with more details
	width    int    // of 24 columns
}

type query struct{ expr, legend string }

// layout places the panels beside each other, as many as fit in a row.
func layout(rows []row) []panel {
	var all []panel
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, r := range rows {
		title := panel{ID: next(), Type: "row", Title: r.title, GridPos: place{1, 24, 0, y}, Collapsed: &r.collapsed, Panels: []panel{}}
		y++
		var inside []panel
		x, height := 0, 0
		for _, a := range r.panels {
			h := map[string]int{"stat": 4, "timeseries": 8, "table": 8}[a.kind]
			if x+a.width > 24 {
				x, y, height = 0, y+height, 0
			}
			inside = append(inside, a.panel(next(), place{h, a.width, x, y}))
			x, height = x+a.width, max(height, h)
		}
		y += height
		if r.collapsed {
			title.Panels = inside
			all = append(all, title)
			continue
		}
		all = append(append(all, title), inside...)
	}
	return all
}

func (a *ask) panel(id int, at place) panel {
	p := panel{ID: id, Type: a.kind, Title: a.title, Description: a.about, GridPos: at, Datasource: prometheus()}
	for i, q := range a.queries {
		t := target{RefID: string(rune('A' + i)), Datasource: prometheus(), Expr: q.expr, LegendFormat: q.legend}
		switch a.kind {
		case "timeseries":
			t.Range = true
		case "table":
			t.Instant, t.Format = true, "table"
		default:
			t.Instant = true
		}
		p.Targets = append(p.Targets, t)
	}
	if a.runbook != "" {
		name := a.runbook[strings.LastIndex(a.runbook, "/")+1:]
		p.Links = []link{page("Runbook: "+name, a.runbook)}
	}
	p.FieldConfig = &fields{a.defaults(), []any{}}
	switch a.kind {
	case "timeseries":
		p.Options = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	case "stat":
		p.Options = map[string]any{
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     "background", "graphMode": "none", "textMode": "auto", "orientation": "auto", "justifyMode": "auto",
		}
	case "table":
		p.Options = map[string]any{"showHeader": true, "cellHeight": "sm"}
	}
	return p
}

func (a *ask) defaults() defaults {
	d := defaults{Unit: a.unit, Thresholds: thresholds{"absolute", []step{{"green", nil}}}}
	for _, t := range []struct {
		color string
		from  float64
	}{{"orange", a.warn}, {"red", a.critical}} {
		if t.from > 0 {
			d.Thresholds.Steps = append(d.Thresholds.Steps, step{t.color, &t.from})
		}
	}
	switch a.kind {
	case "stat":
		d.Color, d.NoValue = map[string]any{"mode": "thresholds"}, "no data"
	case "timeseries":
		zero := 0.0
		d.Min, d.Color = &zero, map[string]any{"mode": "palette-classic"}
		d.Custom = map[string]any{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false,
			"stacking": map[string]any{"mode": "none", "group": "A"}, "thresholdsStyle": map[string]any{"mode": "off"}}
		if a.stacked {
			d.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
		}
		if a.warn > 0 {
			d.Custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
		}
	}
	return d
}
