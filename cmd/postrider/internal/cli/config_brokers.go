package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/broker"
)

// knownBroker is the JSON form of a driver.
type knownBroker struct {
	Name      string        `json:"name"`
	Schemes   []string      `json:"schemes"`
	Example   string        `json:"example"`
	Doc       string        `json:"doc"`
	Publishes bool          `json:"publishes"`
	Consumes  bool          `json:"consumes"`
	Options   []knownOption `json:"options"`
}

type knownOption struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Default string   `json:"default,omitempty"`
	Values  []string `json:"values,omitempty"`
	Doc     string   `json:"doc"`
}

func knownOptions(options []broker.Option) []knownOption {
	known := make([]knownOption, 0, len(options))
	for _, o := range options {
		known = append(known, knownOption{o.Name, string(o.Kind), o.Default, o.Values, o.Doc})
	}
	return known
}

func (a *app) brokersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "brokers",
		Short: "List supported brokers and their settings",
		Long: "Lists the brokers with the schemes of their URLs. What can be set stands below each: in a file beside url, on the\n" +
			"command line as --set option=value.",
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if a.asJSON {
				brokers := make([]knownBroker, 0)
				for _, d := range broker.Drivers() {
					brokers = append(brokers, knownBroker{d.Name, d.Schemes, d.Example, d.Doc, d.Publisher != nil, d.Consumer != nil,
						knownOptions(append(broker.Common(), d.Options...))})
				}
				return a.json(brokers)
			}
			return a.table(brokerRows())
		},
	}
}

func brokerRows() [][]string {
	rows := [][]string{{"all brokers", "", "", ""}}
	rows = append(rows, optionRows(broker.Common())...)
	for _, d := range broker.Drivers() {
		rows = append(rows, nil, []string{d.Name, strings.Join(d.Schemes, ": ") + ":", "", d.Doc + " Such as " + d.Example})
		rows = append(rows, optionRows(d.Options)...)
	}
	return rows
}

func optionRows(options []broker.Option) [][]string {
	var rows [][]string
	for _, o := range options {
		kind := string(o.Kind)
		if len(o.Values) > 0 {
			kind = strings.Join(o.Values, "|")
		}
		rows = append(rows, []string{"  " + o.Name, kind, o.Default, o.Doc})
	}
	return rows
}
