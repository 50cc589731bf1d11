package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const composed = root + "/deploy/compose"

type composeFile struct {
	Services map[string]struct {
		Image     string
		Command   []string
		User      string
		ReadOnly  bool `yaml:"read_only"`
		Secrets   []string
		DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
		Health    struct{ Test []string }               `yaml:"healthcheck"`
	}
	Secrets map[string]struct{ File string }
}

// TestCompose checks that the relay starts after the tables exist, as a user without rights, and
// that everything that is referenced exists.
func TestCompose(t *testing.T) {
	var f composeFile
	if err := yaml.Unmarshal([]byte(read(t, composed+"/compose.yaml")), &f); err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	run(t, "cp", composed+"/make-secrets", made)
	run(t, filepath.Join(made, "make-secrets"))
	for name, secret := range f.Secrets {
		if info, err := os.Stat(filepath.Join(made, secret.File)); err != nil || info.Size() < 40 {
			t.Errorf("make-secrets does not make %s: %v", name, err)
		}
	}
	for name, s := range f.Services {
		for _, secret := range s.Secrets {
			if _, ok := f.Secrets[secret]; !ok {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
		for other, on := range s.DependsOn {
			needed, ok := f.Services[other]
			if !ok || on.Condition == "service_healthy" && len(needed.Health.Test) == 0 {
				t.Errorf("%s waits for %s in vain", name, other)
			}
		}
		if strings.Contains(s.Image, "POSTRIDER_IMAGE") {
			run(t, program(t), append(s.Command, "--help")...)
			if s.User != "65532:65532" || !s.ReadOnly {
				t.Errorf("%s could be tighter: %+v", name, s)
			}
		}
	}
	if on := f.Services["relay"].DependsOn["migrate"].Condition; on != "service_completed_successfully" {
		t.Errorf("the relay waits for the migration: %q", on)
	}
	validate(t, read(t, composed+"/postrider.yaml"), "/run/secrets")
}

func TestScriptsOfPackages(t *testing.T) {
	for _, script := range []string{"compose/make-secrets", "compose/roles.sh", "package/postinstall.sh", "package/preremove.sh"} {
		run(t, "sh", "-n", filepath.Join(root, "deploy", script))
	}
	t.Setenv("DATABASE_URL", "postgres://relay@db/app")
	t.Setenv("BROKER_URL", "nats://broker:4222")
	run(t, program(t), "config", "validate", root+"/deploy/package/postrider.yaml")
}
