package config_test

import (
	"fmt"
	"time"

	"github.com/postrider/postrider/broker/route"
	_ "github.com/postrider/postrider/broker/stdout"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
)

// The same as a file, in Go.
func ExampleFile() {
	f := config.File{
		Databases:    map[string]config.Database{"app": {URL: "postgres://relay@localhost/app"}},
		Destinations: map[string]config.Destination{"screen": {URL: "stdout:"}},
		Feeds: map[string]config.Feed{
			"default": {
				Relay: relay.Config{Lease: 30 * time.Second},
				Routes: []route.Rule{
					{Match: route.Match{Types: []string{"document_uploaded"}}, Name: "verify_document", ID: "verify_{id}"},
					{Match: route.Match{Types: []string{"payment_completed"}}, Name: "send_email"},
				},
			},
		},
	}
	if err := f.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	plan, err := f.Feed("default")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.DatabaseName, plan.Database.Schema, plan.Table.Names("screen"))
	// Output: app postrider [send_email verify_document]
}

// Mistakes come all at once, each with its place.
func ExampleParse() {
	text := `
databases:
  app: {url: "${DATABASE_URL}"}
destinations:
  screen: {url: "stdout:"}
feeds:
  default:
    relay: {lease: 30, bach: 100}
    routes:
      - {types: [document_uploaded], name: "verify_{document}"}
      - {types: [payment_completed], destination: scren}
`
	_, err := config.Parse("postrider.yaml", []byte(text), func(string) (string, bool) { return "", false })
	fmt.Println(err)
	// Output:
	// postrider.yaml:3:14: databases.app.url: the variable DATABASE_URL is not set; ${DATABASE_URL:-default} would give it a default
	// postrider.yaml:8:20: feeds.default.relay.lease: "30" has no unit: write 30s, 30ms or the like
	// postrider.yaml:8:24: feeds.default.relay.bach: unknown key "bach"; did you mean "batch"?
	// postrider.yaml:10:44: feeds.default.routes[0].name: there is no placeholder {document}: want one of {type}, {topic}, {tenant}, {aggregate_type}, {aggregate_id}, {key}, {routing_key}, {id}
	// postrider.yaml:11:51: feeds.default.routes[1].destination: there is no destination "scren": there are screen; did you mean "screen"?
}
