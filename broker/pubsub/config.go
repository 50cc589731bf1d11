package pubsub

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"

	"google.golang.org/api/option"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

// emulatorHost is the environment variable that points Google's clients at an emulator. Like them,
// we connect to it without TLS and credentials.
const emulatorHost = "PUBSUB_EMULATOR_HOST"

// Config configures a [Publisher] or a [Consumer]. Only URL is required, and Name for a consumer.
type Config struct {
	// URL is the project: "pubsub://my-project".
	URL             string
	CredentialsFile string `option:"credentials_file" doc:"JSON file with Google credentials; default: the application default credentials."`
	// Endpoint defaults to the global one, or to PUBSUB_EMULATOR_HOST. Order across several
	// publishers requires a regional one.
	Endpoint  string       `option:"endpoint" doc:"Host and port of the service, such as europe-west1-pubsub.googleapis.com:443; default: the global one."`
	Insecure  bool         `option:"insecure" doc:"No TLS and no credentials, for an emulator at an endpoint on this machine."`
	Unordered bool         `option:"unordered" doc:"Send no ordering keys: no order, and larger requests."`
	Requests  int          `option:"requests" default:"100" doc:"Most requests of one call at a time; each key has at most one."`
	Format    codec.Format `option:"format"`
	Source    string       `option:"source"`

	// Name is the subscription to receive from: its ID, or "projects/PROJECT/subscriptions/ID". It
	// must exist.
	Name string `option:"name"`
	// AckDeadline is extended while messages wait or are handled.
	AckDeadline time.Duration `option:"ack_deadline" default:"30s" doc:"After what silence of a consumer others get its messages; 10s to 10m."`
	// After Attempts failures a message moves to the topic DeadLetter, if it is set.
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`

	// Logger receives outages. Defaults to [slog.Default].
	Logger *slog.Logger
	// Options are further options of the client. Options that have a field above are refused, and
	// so are a connection and an HTTP client. The effect of a gRPC dial option cannot be checked:
	// an interceptor that answers in place of the service, or resends a request after it has
	// returned an error, breaks confirmations and order.
	Options []option.ClientOption

	project string
}

var (
	projectPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*$`)
	idPattern      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)
)

// refused lists client options that cannot be set, and why. The client hides the effect of an
// option, but its type identifies it.
var refused = map[reflect.Type]string{
	reflect.TypeOf(option.WithEndpoint("")):        "WithEndpoint cannot be set: use Endpoint",
	reflect.TypeOf(option.WithoutAuthentication()): "WithoutAuthentication cannot be set: use Insecure",
	reflect.TypeOf(option.WithGRPCConn(nil)):       "WithGRPCConn cannot be set: a connection that is lost must be opened again; use WithGRPCDialOption",
	reflect.TypeOf(option.WithHTTPClient(nil)):     "WithHTTPClient cannot be set: the service is reached with gRPC",
}

// prepare sets the defaults, reports all mistakes, and returns the codec.
func (c *Config) prepare() (*codec.Codec, error) {
	broker.SetDefaults(c)
	errs := broker.Negative(*c)
	complain := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New(text))
		}
	}
	scheme, project, _ := strings.Cut(c.URL, "://")
	c.project = strings.TrimSuffix(project, "/")
	complain(scheme != "pubsub" || !projectPattern.MatchString(c.project), "URL is not one such as pubsub://my-project")
	host, _, err := net.SplitHostPort(c.Endpoint)
	complain(c.Endpoint != "" && (err != nil || host == ""), "Endpoint is not a host and port such as europe-west1-pubsub.googleapis.com:443")
	complain(c.Endpoint != "" && os.Getenv(emulatorHost) != "", "Endpoint (endpoint) and "+emulatorHost+" are both set: want one of them")
	complain(c.Insecure && !isLoopback(host), "Insecure (insecure) is set and Endpoint is not on this machine: for an emulator elsewhere set "+emulatorHost)
	complain(c.Insecure && c.CredentialsFile != "", "Insecure (insecure) and CredentialsFile are both set: credentials are never sent without TLS")
	complain(c.AckDeadline < 10*time.Second || c.AckDeadline > 10*time.Minute, "AckDeadline (ack_deadline) is not between 10s and 10m")
	for _, o := range c.Options {
		if why, ok := refused[reflect.TypeOf(o)]; ok {
			errs = append(errs, errors.New("option "+why))
		}
	}
	coder, err := codec.NewCodec(c.Format, c.Source, codec.Dialect{NoID: true})
	return coder, prefix(errors.Join(append(errs, err)...))
}

func prefix(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pubsub: %w", err)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// path returns the full name of a topic or a subscription; kind is "topics" or "subscriptions".
func (c *Config) path(kind, name string) (string, error) {
	project, id := c.project, name
	if parts := strings.Split(name, "/"); len(parts) == 4 && parts[0] == "projects" && parts[2] == kind {
		project, id = parts[1], parts[3]
	}
	if !projectPattern.MatchString(project) || !idPattern.MatchString(id) || strings.HasPrefix(strings.ToLower(id), "goog") {
		return "", fmt.Errorf("pubsub: %q is not the ID of one of the %s: want 3 to 255 letters, digits and any of -._~+%%, a letter first, and not \"goog\"",
			name, kind)
	}
	return "projects/" + project + "/" + kind + "/" + id, nil
}

// command returns the command that creates a topic or a subscription; more holds arguments of the
// kind.
func command(path, more string) string {
	parts := strings.Split(path, "/")
	return fmt.Sprintf("gcloud pubsub %s create %s --project=%s%s", parts[2], parts[3], parts[1], more)
}
