package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Failover kills the primary, promotes the standby and retargets all proxies. There is no standby
// then until [World.Replicate].
//
// It loses nothing if every commit waited for the standby. Right after a crash of the primary that
// does not hold: what was on its disk is visible at once. Therefore Failover first waits until the
// standby has everything.
func (w *World) Failover(ctx context.Context) (old, now string, err error) {
	d := w.database
	d.change.Lock()
	defer d.change.Unlock()
	primary, standby := d.roles()
	if err := d.caughtUp(ctx, primary, "sync"); err != nil {
		return "", "", fmt.Errorf("failover: %w", err)
	}
	if err := killTree(ctx, w.services.pid(primary.service)); err != nil {
		return "", "", err
	}
	if err := promote(ctx, standby); err != nil {
		return "", "", errors.Join(fmt.Errorf("promoting %s: %w", standby.service, err), w.revive(ctx, primary))
	}
	d.setRoles(standby, primary)
	w.followPrimary()
	return primary.service, standby.service, nil
}

// promote polls with a new snapshot each time: the snapshot of a waiting query could block the
// replay for as long as max_standby_streaming_delay.
func promote(ctx context.Context, standby *node) error {
	if err := standby.exec(ctx, "SELECT pg_promote(false)"); err != nil {
		return err
	}
	return within(ctx, time.Minute, 20*time.Millisecond, func() error {
		return standby.as(ctx, "postrider", func(conn *pgx.Conn) error {
			var recovering bool
			err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&recovering)
			if err == nil && recovering {
				err = errors.New("still replays")
			}
			return err
		})
	})
}

// Replicate makes the server that is not the primary a new standby, and returns when commits wait
// for it again.
func (w *World) Replicate(ctx context.Context) error {
	d := w.database
	d.change.Lock()
	defer d.change.Unlock()
	primary, standby := d.roles()
	return d.replicate(ctx, primary, standby)
}

// followPrimary retargets all proxies to the current primary, and resets connections to the other
// server.
func (w *World) followPrimary() {
	primary, _ := w.database.roles()
	for _, p := range w.databaseProxies() {
		p.Retarget(primary.address)
		p.Reset()
	}
}

// LosePower switches the primary's machine off: unsynced writes are lost. The server is down until
// [World.RestorePower].
func (w *World) LosePower(ctx context.Context) error {
	primary, _ := w.database.roles()
	if primary.image == nil {
		return errors.New("the database has no file system of its own")
	}
	pid := w.services.pid(primary.service)
	if err := primary.image.losePower(); err != nil {
		return err
	}
	return killTree(ctx, pid)
}

// RestorePower starts the primary with what had reached its disk.
func (w *World) RestorePower(ctx context.Context) error {
	primary, _ := w.database.roles()
	if err := primary.image.restorePower(ctx); err != nil {
		return err
	}
	return w.services.run(ctx, nil, "start", primary.service)
}

// FillDisk uses up all space of the primary's file system.
func (w *World) FillDisk() error {
	primary, _ := w.database.roles()
	if primary.image == nil {
		return errors.New("the database has no file system of its own")
	}
	return primary.image.fill()
}

// FreeDisk frees the space, and starts the primary if it has exited meanwhile.
func (w *World) FreeDisk(ctx context.Context) error {
	primary, _ := w.database.roles()
	if err := primary.image.free(); err != nil {
		return err
	}
	return w.revive(ctx, primary)
}

// revive waits until a server accepts connections, and starts it if it has exited.
func (w *World) revive(ctx context.Context, n *node) error {
	return within(ctx, 2*time.Minute, 100*time.Millisecond, func() error {
		err := n.exec(ctx, "SELECT 1")
		if err != nil && w.services.pid(n.service) == 0 {
			return errors.Join(err, w.services.run(ctx, nil, "start", n.service))
		}
		return err
	})
}
