package config

import (
	"errors"
	"strings"
	"testing"
)

// TestEachMistake spoils the good file in one place, and wants exactly the mistakes that are listed, at their lines.
func TestEachMistake(t *testing.T) {
	for name, c := range map[string]struct {
		old, replacement string
		want             []string // a part of each mistake, with its place
	}{
		"unknown key at the top": {"databases:", "database:", []string{
			`postrider.yaml:1:1: database: unknown key "database"; did you mean "databases"?`, `1:1: databases: there are none`}},
		"unknown key":               {"    order: strict", "    ordr: strict", []string{`:17:5: feeds.default.ordr: unknown key "ordr"; did you mean "order"?`}},
		"far from everything":       {"    order: strict", "    banana: 1", []string{`:17:5: feeds.default.banana: unknown key "banana": there are create, database, destination, only, order, relay, routes`}},
		"unknown relay option":      {"lease: 20s", "leese: 20s", []string{`:19:7: feeds.default.relay.leese: unknown key "leese"; did you mean "lease"?`}},
		"unknown route key":         {"drop: true", "dropp: true", []string{`:27:9: feeds.default.routes[1].dropp: unknown key "dropp"; did you mean "drop"?`}},
		"unknown broker option":     {"window: 9", "windows: 9", []string{`:8:5: destinations.jobs.windows: unknown key "windows"; did you mean "window"?`}},
		"duplicate key":             {"    order: strict", "    order: strict\n    order: strict", []string{`:18:5: feeds.default.order: the key stands here a second time; the first is in line 17`}},
		"duplicate name":            {"  events:\n    url", "  jobs: {url: \"fake:\"}\n  events:\n    url", []string{`:9:3: destinations.jobs: the key stands here a second time; the first is in line 5`}},
		"list for a value":          {"order: strict", "order: [strict]", []string{`:17:12: feeds.default.order: want a single value, not a list`}},
		"value for keys":            {"      tenants: [acme, \"\"]", "      acme", []string{`:16:7: feeds.default.only: want keys with values, not a single value`}},
		"value for a list":          {"    routes:\n", "    routes: x\n    database: app\n    relay2:\n", []string{`:21:13: feeds.default.routes: want a list, not a single value`, `:23:5: feeds.default.relay2: unknown key`}},
		"keys for a list":           {"types: [debug.*]", "types: {a: b}", []string{`:26:16: feeds.default.routes[1].types: want a list, not keys with values`}},
		"missing value":             {"order: strict", "order:", []string{`:17:5: feeds.default.order: the value is missing`}},
		"no policy":                 {"order: strict", "order: relaxed", []string{`:17:12: feeds.default.order: "relaxed" is not a policy: want strict or skip`}},
		"unset variable":            {"${DATABASE_URL}", "${DATABASE_URI}", []string{`:3:10: databases.app.url: the variable DATABASE_URI is not set; ${DATABASE_URI:-default} would`}},
		"empty variable":            {"${DATABASE_URL}", "${EMPTY}", []string{`:3:10: databases.app.url: the address is missing`}},
		"not a variable":            {"${BATCH}", "${BATCH!}", []string{`:20:14: feeds.default.relay.batch: ${BATCH!} is not a variable`}},
		"open variable":             {"verify_document", "${BATCH", []string{`:24:15: feeds.default.routes[0].name: a ${ is not closed`}},
		"missing file":              {"testdata/secret", "testdata/none", []string{`:7:15: destinations.jobs.password: ${file:}: stat testdata/none`}},
		"folder for a file":         {"testdata/secret", "testdata", []string{`:7:15: destinations.jobs.password: ${file:}: testdata is not a regular file`}},
		"no database":               {"${DATABASE_URL}", "oracle://rider:db-secret@host", []string{`:3:10: databases.app.url: this is not an address such as postgres://`}},
		"bad schema":                {"${DATABASE_URL}", "${DATABASE_URL}\n    schema: Upper", []string{`:4:13: databases.app.schema: "Upper" is not a name of a schema`}},
		"bad name":                  {"  default:", "  de fault:", []string{`:14:5: feeds.de fault: "de fault" is not a name`}},
		"unknown scheme":            {"fake://user:broker-secret@host", "kafko://user:broker-secret@host", []string{`:6:10: destinations.jobs.url: no broker has the scheme "kafko": this program knows`}},
		"not a URL":                 {"fake://user:broker-secret@host", "host", []string{`:6:10: destinations.jobs.url: the address is not a URL such as`}},
		"no URL":                    {"    url: fake://user:broker-secret@host\n", "", []string{`:6:5: destinations.jobs.url: the address is missing`}},
		"unknown broker":            {"window: 9", "broker: fak", []string{`:8:13: destinations.jobs.broker: there is no broker "fak": this program knows`}},
		"options of another broker": {"window: 9", "broker: stdout", []string{`:7:5: destinations.jobs.password: unknown key`}},
		"option of wrong kind":      {"window: 9", "window: many", []string{`:8:13: destinations.jobs.window: "many" is not a value of kind int`}},
		"option not allowed":        {"window: 9", "mode: slow", []string{`:8:11: destinations.jobs.mode: "slow" is none of fast, safe`}},
		"list for an option":        {"window: 9", "window: [9]", []string{`:8:13: destinations.jobs.window: want a single value, not a list`}},
		"comma in an option":        {"[a, b]", "[a, 'b,c']", []string{`:11:16: destinations.events.hosts[1]: the value contains a comma`}},
		"no such feed database":     {"    order: strict", "    database: ap", []string{`:17:15: feeds.default.database: there is no database "ap": there are app; did you mean "app"?`}},
		"no such destination":       {"destination: jobs", "destination: job", []string{`:23:22: feeds.default.routes[0].destination: there is no destination "job": there are events, jobs; did you mean "jobs"?`}},
		"no such default":           {"destination: events", "destination: nowhere", []string{`:14:18: feeds.default.destination: there is no destination "nowhere": there are events, jobs`}},
		"which destination":         {"    destination: events\n", "", []string{`:27:9: feeds.default.routes[2].destination: which destination? there are events, jobs`}},
		"bare duration":             {"lease: 20s", "lease: 20", []string{`:19:14: feeds.default.relay.lease: "20" has no unit: write 20s, 20ms`}},
		"bad duration":              {"lease: 20s", "lease: soon", []string{`:19:14: feeds.default.relay.lease: "soon" is not a duration`}},
		"negative duration":         {"lease: 20s", "lease: -20s", []string{`:19:14: feeds.default.relay.lease: "-20s" is not more than 0`}},
		"bad number":                {"${BATCH}", "1.5", []string{`:20:14: feeds.default.relay.batch: "1.5" is not a whole number`}},
		"contradiction":             {"${BATCH}", "9000", []string{`:20:14: feeds.default.relay.batch: batch (9000) is larger than read_ahead (4000): a batch could never fill`}},
		"contradicts a default":     {"lease: 20s", "settle_interval: 3s", []string{`:19:24: feeds.default.relay.settle_interval: settle_interval (3s) is longer than a quarter of lease (10s)`}},
		"two contradictions":        {"lease: 20s", "poll_min: 1s\n      outage: {first: 3s, most: 2s}", []string{`:19:17: feeds.default.relay.poll_min: poll_min (1s) is longer than poll_max (250ms)`, `:20:33: feeds.default.relay.outage.most: outage.first (3s) is longer than outage.most (2s)`}},
		"two kinds of pauses":       {"lease: 20s", "retry: {most: 1m,\n        pauses: [1s, 5s]}", []string{`:19:21: feeds.default.relay.retry.most: retry.pauses ([1s 5s]) contradicts retry.first (0s) and retry.most (1m0s): want one or the other`}},
		"bad pause":                 {"lease: 20s", "retry: {pauses: [1s, 5]}", []string{`:19:28: feeds.default.relay.retry.pauses[1]: "5" has no unit`}},
		"no pauses":                 {"lease: 20s", "retry: {pauses: []}", []string{`:19:23: feeds.default.relay.retry.pauses: the list is empty`}},
		"pauses that are no list":   {"lease: 20s", "retry: {pauses: 1s}", []string{`:19:23: feeds.default.relay.retry.pauses: want a list, not a single value`}},
		"too few connections":       {"feeds:\n", "connections: 1\nfeeds:\n", []string{`:12:14: connections: connections (1) is less than the 2 that 1 databases need, 2 each`}},
		"too many connections":      {"feeds:\n", "connections: 99999999999\nfeeds:\n", []string{`:12:14: connections: connections (99999999999) is more than 10000`}},
		"health for everybody":      {"feeds:\n", "health: {listen: ':8710'}\nfeeds:\n", []string{`:12:18: health.listen: other machines can call :8710, and health.token is missing`}},
		"health nowhere":            {"feeds:\n", "health: {listen: 8710}\nfeeds:\n", []string{`:12:18: health.listen: "8710" is not a host and port such as 127.0.0.1:8710`}},
		"unknown placeholder":       {"\"{aggregate_type}.events\"", "\"{aggregate}.events\"", []string{`:28:15: feeds.default.routes[2].name: there is no placeholder {aggregate}: want one of {type}`}},
		"braces":                    {"\"{aggregate_type}.events\"", "\"{aggregate_type.events\"", []string{`:28:15: feeds.default.routes[2].name: unbalanced braces`}},
		"ID without ID":             {"id: verify_{id}", "id: verify", []string{`:25:13: feeds.default.routes[0].id: "verify" does not contain {id}`}},
		"drop and name":             {"drop: true", "drop: true\n        name: x", []string{`:28:15: feeds.default.routes[1].name: name is "x", but drop says`}},
		"neither true nor false":    {"drop: true", "drop: yes", []string{`:27:15: feeds.default.routes[1].drop: "yes" is neither true nor false`}},
		"never reached":             {"      - types: [debug.*]", "      - topics: ['*']\n        name: x\n      - types: [debug.*]", []string{`:28:9: feeds.default.routes[2]: never reached: rule 1`, `:30:9: feeds.default.routes[3]: never reached`}},
		"empty type":                {"[debug.*]", "[debug.*, '']", []string{`:26:26: feeds.default.routes[1].types[1]: the pattern is empty`}},
		"control character":         {"[acme, \"\"]", "[\"a\\tb\"]", []string{`:16:17: feeds.default.only.tenants[0]: the pattern contains a control character`}},
		"anchor":                    {"order: strict", "order: &a strict", []string{`:17:12: anchors (&a) are not supported`}},
		"alias":                     {"    order: strict\n", "    order: &a strict\n    database: *a\n", []string{`:17:12: anchors`, `:18:15: aliases (*a) are not supported`}},
		"tag":                       {"order: strict", "order: !!str strict", []string{`:17:12: tags (!!str) are not supported`}},
		"not YAML":                  {"order: strict", "order: strict: er", []string{`postrider.yaml:17:1: this is not YAML: mapping values are not allowed`}},
		"second document":           {"feeds:\n", "---\nfeeds:\n", []string{`a second document begins here`}},
		"key that is a list":        {"    order: strict", "    [a]: strict", []string{`:17:5: feeds.default: a key is a list, not text`}},
		"empty list of routes":      {"      - types: document_uploaded\n        destination: jobs\n        name: verify_document\n        id: verify_{id}\n      - types: [debug.*]\n        drop: true\n      - name: \"{aggregate_type}.events\"\n", "      []\n", []string{`:22:7: feeds.default.routes: the list is empty`}},
		"a file that is too large":  {"order: strict", "order: strict #" + strings.Repeat("x", maxFile), []string{`postrider.yaml:1:1: the file is larger than 1048576 bytes`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(spoil(t, c.old, c.replacement))
			var got Mistakes
			if !errors.As(err, &got) {
				t.Fatalf("no mistakes, but %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			for i := range max(len(lines), len(c.want)) {
				if i >= len(c.want) || i >= len(lines) || !strings.Contains(lines[i], c.want[i]) {
					t.Fatalf("mistakes\n%s\nwant\n%s", err, strings.Join(c.want, "\n"))
				}
			}
			if strings.Contains(err.Error(), "secret@") {
				t.Errorf("a password is in\n%v", err)
			}
		})
	}
}

func TestAllMistakesAtOnceByLine(t *testing.T) {
	text := good
	for _, change := range [][2]string{
		{"${DATABASE_URL}", "${NOTHING}"}, {"window: 9", "window: x\n    mdoe: fast"}, {"lease: 20s", "lease: 20"},
		{"destination: jobs", "destination: job"}, {"verify_{id}", "verify"}, {"drop: true", "drop: 1"},
	} {
		text = strings.Replace(text, change[0], change[1], 1)
	}
	_, err := parse(text)
	var got []int
	var mistakes Mistakes
	errors.As(err, &mistakes)
	for _, m := range mistakes {
		got = append(got, m.Line)
	}
	want := []int{3, 8, 9, 20, 24, 26, 28}
	if len(got) < len(want) {
		t.Fatalf("lines %v, want %v\n%v", got, want, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("lines %v, want %v\n%v", got, want, err)
		}
	}
}

func TestEmptyFile(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}", "---\n"} {
		_, err := parse(text)
		if err == nil || strings.Count(err.Error(), "there are none") != 3 {
			t.Errorf("%q: %v", text, err)
		}
	}
}
