package broker_test

import (
	"crypto/tls"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/memory"
)

type owlConfig struct {
	URL     string
	TLS     *tls.Config
	Logger  *slog.Logger
	Format  codec.Format  `option:"format"`
	Tower   string        `option:"tower" default:"north" doc:"Where it lives."`
	Flights int           `option:"flights" default:"3" doc:"At a time."`
	Night   bool          `option:"night" default:"true" doc:"Whether it flies."`
	Rest    time.Duration `option:"rest" default:"1m" doc:"Between two flights."`
	Prey    []string      `option:"prey" doc:"What it catches."`
	Call    string        `option:"call" values:"hoo,hoohoo" doc:"How it speaks."`
	Word    string        `option:"word" kind:"secret" doc:"By which it knows its own."`
	unbound int
}

func TestOptionsOf(t *testing.T) {
	var got []string
	for _, o := range broker.OptionsOf(owlConfig{unbound: 1}) {
		got = append(got, o.Name+" "+string(o.Kind)+" "+o.Default+" "+strings.Join(o.Values, "|"))
	}
	want := []string{
		"tower text north ", "flights int 3 ", "night bool true ", "rest duration 1m ", "prey list  ", "call text  hoo|hoohoo",
		"word secret  ", "ca_file text  ", "cert_file text  ", "key_file text  ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestFill(t *testing.T) {
	var got owlConfig
	d := broker.Driver{Name: "owl", Options: broker.OptionsOf(owlConfig{}), Publisher: func(s *broker.Settings) (postrider.Publisher, error) {
		return memory.New(), s.Fill(&got)
	}}
	logger := slog.New(slog.DiscardHandler)
	_, err := d.Open(&broker.Settings{URL: "owl://tower", Logger: logger, Values: map[string]string{
		"flights": "5", "night": "false", "prey": "mice,voles", "format": "raw",
	}})
	want := owlConfig{
		URL: "owl://tower", Logger: logger, Format: codec.Raw, Tower: "north", Flights: 5, Rest: time.Minute, Prey: []string{"mice", "voles"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	var nothing struct{}
	if err := (&broker.Settings{URL: "owl://tower", Logger: logger}).Fill(&nothing); err != nil {
		t.Errorf("a configuration without these fields: %v", err)
	}
	if _, err := d.Open(&broker.Settings{Values: map[string]string{"ca_file": "/does/not/exist"}}); err == nil {
		t.Error("a file that is not there was accepted")
	}
}

func TestSetDefaults(t *testing.T) {
	got := owlConfig{Flights: 7}
	broker.SetDefaults(&got)
	if got.Flights != 7 || got.Tower != "north" || got.Rest != time.Minute || got.Logger == nil {
		t.Errorf("got %+v", got)
	}
}

func TestNegative(t *testing.T) {
	errs := broker.Negative(owlConfig{Flights: -1, Rest: -time.Second})
	if len(errs) != 2 || !strings.Contains(errs[0].Error(), "flights") || !strings.Contains(errs[1].Error(), "-1s") {
		t.Errorf("got %v", errs)
	}
}
