// Package console contains the snippets of docs/console.md.
package console

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/postrider/postrider/admin/console"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/store/postgres"
)

// Mount adds the console to a program's own pages.
func Mount(ctx context.Context, mux *http.ServeMux, admin *postgres.Admin, trusted []netip.Prefix) error {
	//docs:begin mount
	c, err := console.New(console.Config{
		Databases: []console.Database{{Name: "shop", DeadLetters: admin, Feeds: admin, Records: admin, Log: admin, Gauges: admin, Problems: admin, Replays: admin}},
		Prefix:    "/postrider",
		Access:    auth.Config{Proxy: &auth.Proxy{From: trusted, UserHeader: "X-Forwarded-User"}},
	})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	go c.Run(ctx)
	mux.Handle("/postrider/", c)
	//docs:end
	return nil
}
