package cli

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/doctor"
	"github.com/postrider/postrider/reconcile"
)

// consoleConnections is the number of connections of the console to each database. They are
// separate from those of relays, so that a search never delays a relay.
const consoleConnections = 3

// logDatabase is a database with the name that operators know.
type logDatabase struct {
	name  string
	db    *database
	plans []*config.Plan // of the file, if there is one
	file  *config.File
}

// flagDatabase returns the database that the flags name.
func (a *app) flagDatabase() logDatabase {
	name := "default"
	if cfg, err := a.db.config(); err == nil && cfg.ConnConfig.Database != "" {
		name = cfg.ConnConfig.Database
	}
	if a.db.isClassic() {
		return logDatabase{name: a.adoptedName(), db: &a.db}
	}
	if a.db.schema != "postrider" { // a database may have several logs
		name += "." + a.db.schema
	}
	return logDatabase{name: name, db: &a.db}
}

// fileDatabases returns the databases of a file.
func fileDatabases(f *config.File) ([]logDatabase, error) {
	var all []logDatabase
	for _, name := range slices.Sorted(maps.Keys(f.Databases)) {
		plans, err := plansOf(f, name)
		if err != nil {
			return nil, err
		}
		all = append(all, logDatabase{name, fileDatabase(name, f.Databases[name]), plans, f})
	}
	return all, nil
}

// openConsole is a console with its open connections.
type openConsole struct {
	*console.Console
	ends []func() // close the connections
}

func (c *openConsole) close() {
	for _, end := range c.ends {
		end()
	}
}

// openConsole creates a console for databases, and for the relays and reconcilers of this process
// if it has any. It does not wait for a database.
func (a *app) openConsole(ctx context.Context, c config.Console, databases []logDatabase, relays func() []console.Relay,
	reconcilers *reconcilers, log *slog.Logger,
) (_ *openConsole, err error) {
	opened := &openConsole{}
	defer func() {
		if err != nil {
			opened.close()
		}
	}()
	cfg := console.Config{
		Relays: relays, Access: access(c), Prefix: c.Prefix, Redact: c.Redact, TraceURL: c.TraceURL,
		Version: currentBuild().Version, Logger: log, Scrub: a.scrub,
	}
	for _, d := range databases {
		shown, err := opened.add(ctx, d)
		if err != nil {
			return nil, err
		}
		if reconcilers != nil {
			shown.RunReconciler = reconcilers.runner(d.name)
		}
		cfg.Databases = append(cfg.Databases, shown)
	}
	if err := cfg.Access.Validate(c.Listen); err != nil {
		return nil, usageError{err}
	}
	if opened.Console, err = console.New(cfg); err != nil { //nolint:contextcheck // it outlives this call
		return nil, usageError{err}
	}
	return opened, nil
}

// add opens a database for the console.
func (c *openConsole) add(ctx context.Context, d logDatabase) (console.Database, error) {
	if d.db.isClassic() {
		return c.addTable(ctx, d)
	}
	settings, err := d.db.config()
	if err != nil {
		return console.Database{}, err
	}
	settings.MaxConns = consoleConnections
	if params := settings.ConnConfig.RuntimeParams; params["application_name"] == "postrider" {
		params["application_name"] = "postrider console" // so that monitoring can tell its load apart
	}
	pool, err := d.db.openWith(ctx, settings)
	if err != nil {
		return console.Database{}, err
	}
	c.ends = append(c.ends, pool.Close)
	shown, err := shownDatabase(d, pool)
	if err != nil {
		return shown, usageError{err}
	}
	return shown, nil
}

// addTable opens a database with the classic engine, which supports fewer pages.
func (c *openConsole) addTable(ctx context.Context, d logDatabase) (console.Database, error) {
	db, err := d.db.openTable(ctx, consoleConnections)
	if err != nil {
		return console.Database{}, err
	}
	c.ends = append(c.ends, func() { _ = db.Close() })
	deadLetters, err := d.db.classicAdmin(db)
	if err != nil {
		return console.Database{}, usageError{err}
	}
	shown := console.Database{
		Name: d.name, Schema: d.db.schema, DeadLetters: deadLetters, Feeds: deadLetters, Records: deadLetters, Log: deadLetters, Gauges: deadLetters, Problems: deadLetters,
	}
	if r, ok := deadLetters.(replayer); ok {
		shown.Replays = r
	}
	return shown, nil
}

// shownDatabase returns a database of the log engine with all its admin APIs.
func shownDatabase(d logDatabase, pool *pgxpool.Pool) (console.Database, error) {
	db, err := d.db.log(pool)
	if err != nil {
		return console.Database{}, err
	}
	operator := db.Admin()
	return console.Database{
		Name: d.name, Schema: d.db.schema, DeadLetters: operator, Feeds: operator, Records: operator, Log: operator, Gauges: operator, Problems: operator, Replays: operator,
		Keys: db.IdempotencyAdmin(), Sagas: db.SagaAdmin(), Reconcilers: db.Reconciliations(),
		Doctor: func(ctx context.Context) ([]console.Finding, error) { return examine(ctx, d, pool) },
	}, nil
}

// examine runs the checks of "postrider doctor" for one database and the destinations of its feeds.
func examine(ctx context.Context, d logDatabase, pool *pgxpool.Pool) ([]console.Finding, error) {
	target := doctor.Database{
		Name: d.name, Pool: pool, Schema: d.db.schema, Flags: d.db.commandFlags(), Feeds: d.plans, HasFile: d.file != nil,
	}
	var destinations []doctor.Destination
	if d.file != nil {
		destinations = destinationsOf(d.file, d.plans)
	}
	var found []console.Finding
	for _, f := range doctor.Run(ctx, []doctor.Database{target}, destinations) {
		found = append(found, console.Finding{
			Check: f.Check, Severity: string(f.Severity), Subject: f.Subject, Finding: f.Finding, Why: f.Why, Fix: f.Fix,
		})
	}
	return found, ctx.Err()
}

// runner returns a function that runs a reconciler of the database now, or nil if this process runs
// none there.
func (p *reconcilers) runner(database string) func(context.Context, admin.By, string) (reconcile.Counts, error) {
	reconciler, ok := p.byName[database]
	if !ok {
		return nil
	}
	return func(ctx context.Context, by admin.By, job string) (reconcile.Counts, error) {
		run, err := reconciler.RunNow(ctx, job, reconcile.Options{})
		if run.Fixed > 0 {
			db, _ := p.database(ctx, database) // is open
			err = errors.Join(err, db.Admin().RecordReconciler(context.WithoutCancel(ctx), by, job, run.Counts))
		}
		return run.Counts, err
	}
}

// access converts the authentication settings of the file.
func access(c config.Console) auth.Config {
	cfg := auth.Config{Hosts: c.Hosts, Payloads: auth.Role(c.Payloads), Session: c.Session, SessionKey: []byte(c.SessionKey)}
	for _, name := range slices.Sorted(maps.Keys(c.Tokens)) {
		cfg.Tokens = append(cfg.Tokens, auth.Token{Name: name, Secret: c.Tokens[name].Token, Role: auth.Role(c.Tokens[name].Role)})
	}
	if o := c.OIDC; o != nil {
		cfg.OIDC = &auth.OIDC{
			Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.RedirectURL, Scopes: o.Scopes,
			RolesClaim: o.RolesClaim, NameClaim: o.NameClaim, Roles: roles(o.Roles),
		}
	}
	if p := c.Proxy; p != nil {
		cfg.Proxy = &auth.Proxy{UserHeader: p.UserHeader, RoleHeader: p.RoleHeader, Role: auth.Role(p.Role), Roles: roles(p.Roles)}
		for _, from := range p.From {
			if prefix, err := netip.ParsePrefix(from); err == nil { // the file's check has reported invalid ones
				cfg.Proxy.From = append(cfg.Proxy.From, prefix)
			}
		}
	}
	return cfg
}

func roles(of map[string]string) map[string]auth.Role {
	if len(of) == 0 {
		return nil
	}
	all := make(map[string]auth.Role, len(of))
	for value, role := range of {
		all[value] = auth.Role(role)
	}
	return all
}
