package dashboard

// The parts of Grafana's dashboard model that this package uses, schema version 39 (Grafana 11).

type board struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	Editable      bool       `json:"editable"`
	GraphTooltip  int        `json:"graphTooltip"` // 1: one crosshair for all panels
	Refresh       string     `json:"refresh"`
	SchemaVersion int        `json:"schemaVersion"`
	Time          span       `json:"time"`
	Timezone      string     `json:"timezone"`
	Links         []link     `json:"links"`
	Templating    templating `json:"templating"`
	Panels        []panel    `json:"panels"`
}

type span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type link struct {
	Title       string   `json:"title"`
	URL         string   `json:"url"`
	Type        string   `json:"type"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
}

// page returns a link to a file of the repository.
func page(title, path string) link {
	return link{Title: title, URL: "${runbooks}/" + path, Type: "link", Icon: "doc", Tags: []string{}, TargetBlank: true}
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	Name       string  `json:"name"`
	Label      string  `json:"label"`
	Type       string  `json:"type"`
	Query      any     `json:"query"`
	Current    *choice `json:"current,omitempty"`
	Options    []any   `json:"options,omitempty"`
	Datasource *source `json:"datasource,omitempty"`
	Definition string  `json:"definition,omitempty"`
	Refresh    int     `json:"refresh,omitempty"` // 2: when the time range changes
	Sort       int     `json:"sort,omitempty"`    // 1: by name
	Multi      bool    `json:"multi,omitempty"`
	IncludeAll bool    `json:"includeAll,omitempty"`
	AllValue   string  `json:"allValue,omitempty"`
	Hide       int     `json:"hide,omitempty"` // 2: altogether
}

type choice struct {
	Text     any  `json:"text"`
	Value    any  `json:"value"`
	Selected bool `json:"selected"`
}

type labelQuery struct {
	Query string `json:"query"`
	RefID string `json:"refId"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	GridPos     place          `json:"gridPos"`
	Collapsed   *bool          `json:"collapsed,omitempty"` // of rows
	Panels      []panel        `json:"panels,omitzero"`
	Datasource  *source        `json:"datasource,omitempty"`
	Targets     []target       `json:"targets,omitempty"`
	FieldConfig *fields        `json:"fieldConfig,omitempty"`
	Options     map[string]any `json:"options,omitempty"`
	Links       []link         `json:"links,omitempty"`
}

type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type target struct {
	RefID        string  `json:"refId"`
	Datasource   *source `json:"datasource"`
	Expr         string  `json:"expr"`
	LegendFormat string  `json:"legendFormat"`
	Range        bool    `json:"range,omitempty"`
	Instant      bool    `json:"instant,omitempty"`
	Format       string  `json:"format,omitempty"`
}

type fields struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Unit       string         `json:"unit"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
	Color      map[string]any `json:"color,omitempty"`
	Thresholds thresholds     `json:"thresholds"`
	Custom     map[string]any `json:"custom,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"` // nil: everything below the next
}
