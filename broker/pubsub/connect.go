package pubsub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	google "cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/postrider/postrider/broker/session"
)

// connection is Google's client. gRPC reconnects by itself; requests in flight on a lost connection
// fail.
type connection struct{ *google.Client }

// Lost returns nil, because the connection never ends: a new attempt is needed only if opening
// failed, for example without credentials.
func (c connection) Lost() <-chan struct{} { return nil }

// Close ends all calls.
func (c connection) Close() { _ = c.Client.Close() }

type keeper = session.Keeper[connection]

// newKeeper returns a keeper of the client. Opening the client reads credentials and does not wait
// for the service.
func (c *Config) newKeeper() *keeper { return session.New("pubsub", c.Logger, c.open) }

func (c *Config) open(ctx context.Context) (connection, error) {
	client, err := c.newClient(ctx)
	if err != nil {
		return connection{}, err
	}
	// Disable the client's own retries: the relay decides what is resent, and must learn of an
	// outage immediately.
	client.TopicAdminClient.CallOptions.Publish = nil
	client.SubscriptionAdminClient.CallOptions.StreamingPull = nil
	return connection{client}, nil
}

// newClient returns Google's client with its default call options.
func (c *Config) newClient(ctx context.Context) (*google.Client, error) {
	options := []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		})),
		// Timeout is also the TCP user timeout: a connection that accepts data but never
		// acknowledges it is dropped after it.
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 10 * time.Second})),
	}
	if c.Endpoint != "" {
		options = append(options, option.WithEndpoint(c.Endpoint))
	}
	switch {
	case c.Insecure:
		options = append(options, option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	case c.CredentialsFile != "" && os.Getenv(emulatorHost) == "":
		kind, err := credentialsType(c.CredentialsFile)
		if err != nil {
			return nil, err
		}
		options = append(options, option.WithAuthCredentialsFile(kind, c.CredentialsFile))
	}
	return google.NewClient(ctx, c.project, append(options, c.Options...)...)
}

// credentialsType reads the kind of credentials in a file. The client requires it to protect users
// of untrusted files; an operator's own file may be of any kind.
func credentialsType(file string) (option.CredentialsType, error) {
	content, err := os.ReadFile(file)
	var head struct{ Type option.CredentialsType }
	if err == nil {
		err = json.Unmarshal(content, &head)
	}
	if err == nil && head.Type == "" {
		err = errors.New("it has no type")
	}
	if err != nil {
		err = fmt.Errorf("credentials_file: %s is no JSON file with Google credentials: %w", file, err)
	}
	return head.Type, err
}
