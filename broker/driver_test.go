package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
)

func init() {
	broker.Register(broker.Driver{
		Name:    "pigeon",
		Schemes: []string{"pigeon", "pigeons"},
		Options: []broker.Option{
			{Name: "loft", Kind: broker.Text, Default: "roof"},
			{Name: "birds", Kind: broker.Int},
			{Name: "homing", Kind: broker.Bool, Default: "true"},
			{Name: "patience", Kind: broker.Duration, Default: "90s"},
			{Name: "routes", Kind: broker.List},
		},
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return memory.New(), nil },
	})
}

func TestLookup(t *testing.T) {
	if d, err := broker.ForURL("pigeons://user:secret@loft:1"); err != nil || d.Name != "pigeon" {
		t.Errorf("got %q, %v", d.Name, err)
	}
	if d, err := broker.ForURL("pigeon://a:1,b:2"); err != nil || d.Name != "pigeon" {
		t.Errorf("several hosts: got %q, %v", d.Name, err)
	}
	for _, address := range []string{"owl://user:secret@tower", "::secret::", "secret"} {
		if _, err := broker.ForURL(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", address, err)
		}
	}
	if _, err := broker.Lookup("owl"); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("got %v, want the names that there are", err)
	}
}

func TestRegisterTwice(t *testing.T) {
	for _, d := range []broker.Driver{{Name: "pigeon"}, {Name: "other", Schemes: []string{"pigeon"}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered", d.Name)
				}
			}()
			broker.Register(d)
		}()
	}
}

func TestCheckReportsEverything(t *testing.T) {
	d, err := broker.Lookup("pigeon")
	if err != nil {
		t.Fatal(err)
	}
	err = d.Check(map[string]string{"birds": "many", "feathers": "white", "patience": "long", "format": "xml", "homing": "false"})
	for _, part := range []string{"birds", "feathers", "patience", "format"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want it to name %s", err, part)
		}
	}
	if strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v, want four mistakes", err)
	}
}

func TestSettings(t *testing.T) {
	var got *broker.Settings
	d, _ := broker.Lookup("pigeon")
	d.Publisher = func(s *broker.Settings) (postrider.Publisher, error) {
		got = s
		return memory.New(), nil
	}
	if _, err := d.Open(&broker.Settings{Values: map[string]string{"birds": "3", "routes": "north, ,south"}}); err != nil {
		t.Fatal(err)
	}
	if got.Text("loft") != "roof" || got.Int("birds") != 3 || !got.Bool("homing") || got.Duration("patience") != 90*time.Second ||
		strings.Join(got.List("routes"), "|") != "north|south" || got.Format() != "cloudevents" || got.Int("in_flight") != 64 {
		t.Errorf("got %+v", got)
	}
	if _, err := d.Subscribe(&broker.Settings{}); err == nil {
		t.Error("subscribed to a broker that has nothing to receive")
	}
}
