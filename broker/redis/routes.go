package redis

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// routes finds the server for a stream: the only one, the primary that sentinels name, or a node of
// a cluster.
type routes struct {
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil without a cluster
	single  *redis.Client        // nil with a cluster

	mu     sync.Mutex
	breaks map[string]*atomic.Int64 // broken connections, by server address
}

func newRoutes(options *redis.UniversalOptions) *routes {
	r := &routes{client: redis.NewUniversalClient(options), breaks: make(map[string]*atomic.Int64)}
	r.cluster, _ = r.client.(*redis.ClusterClient)
	r.single, _ = r.client.(*redis.Client)
	return r
}

// primary returns a client of the server for a stream.
func (r *routes) primary(ctx context.Context, stream string) (*redis.Client, error) {
	if r.cluster == nil {
		return r.single, nil
	}
	return r.cluster.MasterForKey(ctx, stream)
}

// line returns a new connection to a server.
func (r *routes) line(options *redis.Options) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	breaks := r.breaks[options.Addr]
	if breaks == nil {
		breaks = new(atomic.Int64)
		r.breaks[options.Addr] = breaks
	}
	return &line{options: options, breaks: breaks}
}

// changed refreshes the cluster state after a server could not be reached, or refused entries that
// may have moved.
func (r *routes) changed(ctx context.Context) {
	if r.cluster != nil {
		r.cluster.ReloadState(ctx)
	}
}
