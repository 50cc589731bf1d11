package world

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

// Server is one server of the world.
type Server struct {
	world   *World
	name    string
	service string
}

// Names of servers, in addition to those of destinations; the NATS servers are nats1, nats2 and
// nats3.
const (
	Primary   = "primary"
	Standby   = "standby"
	PgBouncer = "pgbouncer"
)

// Server returns a server by its name. The primary and the standby are the current ones: they may
// change their roles later.
func (w *World) Server(name string) *Server {
	return &Server{w, name, w.service(name)}
}

func (w *World) service(name string) string {
	switch name {
	case Primary:
		primary, _ := w.database.roles()
		return primary.service
	case Standby:
		_, standby := w.database.roles()
		return standby.service
	case "nats1", "nats2", "nats3":
		return "nats-cluster" + strings.TrimPrefix(name, NATS) + "@" + w.Options.Instance
	}
	return name + "@" + w.Options.Instance
}

// Name returns the name that it was found by.
func (s *Server) Name() string { return s.name }

// Running reports whether it has a process.
func (s *Server) Running() bool { return s.world.services.pid(s.service) != 0 }

// PIDs returns the IDs of all its processes.
func (s *Server) PIDs() []int {
	pid := s.world.services.pid(s.service)
	if pid == 0 {
		return nil
	}
	return tree(pid)
}

// Kill kills all its processes.
func (s *Server) Kill(ctx context.Context) error {
	pid := s.world.services.pid(s.service)
	if pid == 0 {
		return fmt.Errorf("%s does not run", s.name)
	}
	return killTree(ctx, pid)
}

// Start starts it, and returns when it serves clients.
func (s *Server) Start(ctx context.Context) error {
	return s.world.services.run(ctx, nil, "start", s.service)
}

// Stop stops it cleanly.
func (s *Server) Stop(ctx context.Context) error {
	return s.world.services.run(ctx, nil, "down", s.service)
}

// Pause suspends all its processes until Resume.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume resumes them.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) error {
	pid := s.world.services.pid(s.service)
	if pid == 0 {
		return fmt.Errorf("%s does not run", s.name)
	}
	return signalTree(pid, signal)
}

// Connect opens a connection to the primary that goes through no proxy.
func (w *World) Connect(ctx context.Context) (*pgx.Conn, error) {
	primary, _ := w.database.roles()
	return pgx.Connect(ctx, primary.dsn("postrider", "fault"))
}

// NATSLeader returns the server that leads the stream of a subject.
func (w *World) NATSLeader(ctx context.Context, subject string) (string, error) {
	conn, err := nats.Connect(w.Broker(NATS), nats.NoReconnect())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return "", err
	}
	name, err := js.StreamNameBySubject(ctx, subject)
	if err != nil {
		return "", err
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return "", err
	}
	cluster := stream.CachedInfo().Cluster
	if cluster == nil || cluster.Leader == "" {
		return "", fmt.Errorf("the stream %s has no leader", name)
	}
	return NATS + strings.TrimPrefix(cluster.Leader, "n"), nil
}

// MoveSubject replaces a subject of the stream that has it. The contents of the stream stay.
func (w *World) MoveSubject(ctx context.Context, from, to string) error {
	conn, err := nats.Connect(w.Broker(NATS))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	return within(ctx, time.Minute, time.Second, func() error { // a cluster may have no leader for a moment
		name, err := js.StreamNameBySubject(ctx, from)
		if err != nil {
			return err
		}
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		config := stream.CachedInfo().Config
		config.Subjects = []string{to}
		_, err = js.UpdateStream(ctx, config)
		return err
	})
}

// RabbitMQCtl runs rabbitmqctl on the world's RabbitMQ.
func (w *World) RabbitMQCtl(ctx context.Context, args ...string) error {
	ctl := filepath.Join(w.services.dir(w.service(RabbitMQ)), "rabbitmqctl")
	if out, err := exec.CommandContext(ctx, ctl, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// RedisDo sends a command to the world's Redis.
func (w *World) RedisDo(ctx context.Context, args ...any) error {
	options, err := redis.ParseURL(w.Broker(Redis))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	return client.Do(ctx, args...).Err()
}
