package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/internal/need"
)

// TestObjects checks that a Kubernetes server would accept the rendered objects.
func TestObjects(t *testing.T) {
	conform := need.Program(t, "kubeconform", "kubeconform")
	for golden := range renderings {
		whole := strings.NewReplacer("  # files/postrider.rules.yml", indented(read(t, shown["postrider.rules.yml"]), "  "),
			"    # files/dashboard.json", "    {}").Replace(read(t, golden))
		cmd := exec.CommandContext(t.Context(), conform, "-strict", "-schema-location", "schemas/{{.ResourceKind}}{{.KindSuffix}}.json", "-")
		cmd.Stdin = strings.NewReader(whole)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", golden, err, out)
		}
	}
}

func indented(text, indent string) string {
	return indent + strings.ReplaceAll(text, "\n", "\n"+indent)
}

// object has the fields that the tests check.
type object struct {
	Kind string
	Data map[string]string
	Spec struct {
		Template struct {
			Spec struct {
				Grace    int `yaml:"terminationGracePeriodSeconds"`
				Security struct {
					NonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args []string
				}
			}
		}
	}
}

func objects(t *testing.T, golden string) (all []object) {
	t.Helper()
	for text := range strings.SplitSeq(read(t, golden), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%s: %v\n%s", golden, err, text)
		}
		all = append(all, o)
	}
	return all
}

// TestChartFits checks that pods live longer than their relays drain, and that the program accepts
// the arguments and the configuration file.
func TestChartFits(t *testing.T) {
	graces := map[string]int{"testdata/default.yaml": 10 + 20, "testdata/full.yaml": 25 + 20}
	for golden := range renderings {
		var deployments, files int
		for _, o := range objects(t, golden) {
			if o.Kind == "Deployment" {
				deployments++
				pod := o.Spec.Template.Spec
				if pod.Grace != graces[golden] || !pod.Security.NonRoot {
					t.Errorf("%s: %+v", golden, pod)
				}
				run(t, program(t), append(pod.Containers[0].Args, "--help")...)
			}
			if o.Kind == "Job" {
				run(t, program(t), append(o.Spec.Template.Spec.Containers[0].Args, "--help")...)
			}
			if text, ok := o.Data["postrider.yaml"]; ok {
				files++
				validate(t, text, "/run/secrets/postrider")
			}
		}
		if deployments != 1 || files != 1 {
			t.Errorf("%s: %d deployments, %d files", golden, deployments, files)
		}
	}
}

// validate runs "postrider config validate" on a file whose secrets are in a folder that this
// machine does not have.
func validate(t *testing.T, text, secrets string) {
	t.Helper()
	dir := t.TempDir()
	for name, secret := range map[string]string{
		"database-url": "postgres://relay@db/app", "broker-url": "nats://broker:4222", "health-token": "t0ken", "oidc-secret": "s",
		"session-key": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "relay_password": "p", "health_token": "t0ken",
		"console_token": "0123456789abcdef0123456789abcdef",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "postrider.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, secrets, dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, program(t), "config", "validate", "--open", path)
}
