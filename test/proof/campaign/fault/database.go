package fault

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

func databaseKinds() []Kind {
	claims := []string{theDatabase}
	return []Kind{
		{
			Name: "database-kill", Doc: "all processes of the primary are killed; it is started again and recovers", Weight: 6,
			Shortest: 500 * time.Millisecond, Longest: 6 * time.Second, Takes: 3 * time.Second, Claims: claims, Begin: killDatabase,
		},
		{
			Name: "database-pause", Doc: "no process of the primary does anything", Weight: 5,
			Shortest: 2 * time.Second, Longest: 10 * time.Second, Claims: claims, Begin: pauseDatabase(world.Primary),
		},
		{
			Name: "standby-pause", Doc: "the standby does nothing, so that no commit ends", Weight: 3,
			Shortest: time.Second, Longest: 8 * time.Second, Claims: claims, Begin: pauseDatabase(world.Standby),
		},
		{
			Name: "failover", Doc: "the primary is killed, the standby promoted, and the old primary becomes a new standby", Weight: 4,
			Shortest: 2 * time.Second, Longest: 5 * time.Second, Takes: 15 * time.Second, Claims: claims, Begin: failover,
		},
		{
			Name: "restore", Doc: "the database is moved by a copy; relays pause until the operator rebases", Weight: 1,
			Shortest: 2 * time.Second, Longest: 4 * time.Second, Takes: 40 * time.Second, Claims: []string{theDatabase, thePaths}, Begin: restore,
		},
		{
			Name: "power-loss", Doc: "the primary's machine is switched off: what was not synced is lost", Weight: 4, Needs: []Need{Root},
			Shortest: time.Second, Longest: 4 * time.Second, Takes: 5 * time.Second, Claims: claims, Begin: losePower,
		},
		{
			Name: "disk-full", Doc: "the primary's disk is full for a while", Weight: 3, Needs: []Need{Root},
			Shortest: 2 * time.Second, Longest: 8 * time.Second, Takes: 3 * time.Second, Claims: claims, Begin: fillDisk,
		},
	}
}

func killDatabase(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	s := w.Server(world.Primary)
	if err := s.Kill(ctx); err != nil {
		return nil, err
	}
	return &Running{Target: s.Name(), Touches: []string{record.Database}, Heal: s.Start}, nil
}

func pauseDatabase(name string) func(context.Context, *world.World, *rand.Rand) (*Running, error) {
	return func(_ context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
		s := w.Server(name)
		if err := s.Pause(); err != nil {
			return nil, err
		}
		return &Running{Target: name, Touches: []string{record.Database}, Heal: func(context.Context) error { return s.Resume() }}, nil
	}
}

func failover(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	old, now, err := w.Failover(ctx)
	if err != nil {
		return nil, err
	}
	return &Running{Target: now, Detail: "instead of " + old, Touches: []string{record.Database}, Heal: w.Replicate}, nil
}

func restore(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	how, err := w.Restore(ctx)
	if err != nil {
		return nil, err
	}
	return &Running{
		Target: world.Primary, Detail: how, Touches: []string{record.Database, record.Relay, record.Producer, record.Consumer},
		Heal: func(ctx context.Context) error {
			if err := w.Rebase(ctx); err != nil {
				return err
			}
			return w.Replicate(ctx)
		},
	}, nil
}

func losePower(ctx context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	if err := w.LosePower(ctx); err != nil {
		return nil, err
	}
	return &Running{Target: world.Primary, Touches: []string{record.Database}, Heal: w.RestorePower}, nil
}

func fillDisk(_ context.Context, w *world.World, _ *rand.Rand) (*Running, error) {
	if err := w.FillDisk(); err != nil {
		return nil, err
	}
	return &Running{Target: world.Primary, Touches: []string{record.Database}, Heal: w.FreeDisk}, nil
}
