package broker

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A broker's configuration is one struct, used by Go programs and configuration files alike. Struct
// tags give each field's name in a file:
//
//	Stream     string        `option:"stream" doc:"The stream that must store the messages."`
//	AckTimeout time.Duration `option:"ack_timeout" default:"5s" doc:"How long to wait for an acknowledgement."`
//	Queue      string        `option:"queue_type" default:"classic" values:"classic,quorum" doc:"…"`
//	Token      string        `option:"token" kind:"secret" doc:"…"`
//
// The kind follows from the type: string, int, bool, time.Duration, []string, and types derived
// from them. The fields URL, TLS, Dial and Logger correspond to those of [Settings]; a struct with
// a TLS field has the options of [TLSOptions].

// OptionsOf returns the options that a struct declares, except those in [Common].
func OptionsOf(config any) []Option {
	var options []Option
	common := Common()
	eachOption(reflect.ValueOf(config), func(f reflect.StructField, _ reflect.Value, name string) {
		if slices.ContainsFunc(common, func(o Option) bool { return o.Name == name }) {
			return
		}
		o := Option{Name: name, Kind: kindOf(f), Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc")}
		if values := f.Tag.Get("values"); values != "" {
			o.Values = strings.Split(values, ",")
		}
		options = append(options, o)
	})
	if reflect.ValueOf(config).FieldByName("TLS").IsValid() {
		options = append(options, TLSOptions()...)
	}
	return options
}

// Fill sets the fields of the struct that config points to from the settings.
func (s *Settings) Fill(config any) error {
	v := reflect.ValueOf(config).Elem()
	eachOption(v, func(_ reflect.StructField, field reflect.Value, name string) {
		if text := s.Text(name); text != "" {
			setText(field, text)
		}
	})
	set := func(name string, value any) {
		if f := v.FieldByName(name); f.IsValid() && !reflect.ValueOf(value).IsZero() {
			f.Set(reflect.ValueOf(value).Convert(f.Type()))
		}
	}
	set("URL", s.URL)
	set("Dial", s.Dial)
	set("Logger", s.Logger)
	if v.FieldByName("TLS").IsValid() {
		config, err := s.TLS()
		if err != nil {
			return err
		}
		set("TLS", config)
	}
	return nil
}

// From fills a broker configuration C from the settings and passes it to open.
func From[C, T any](s *Settings, open func(C) (T, error)) (T, error) {
	var config C
	if err := s.Fill(&config); err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", s.driver, err)
	}
	return open(config)
}

// SetDefaults sets the zero fields of the struct that config points to to their defaults. A nil
// Logger becomes [slog.Default].
func SetDefaults(config any) {
	v := reflect.ValueOf(config).Elem()
	eachOption(v, func(f reflect.StructField, field reflect.Value, _ string) {
		if text := f.Tag.Get("default"); text != "" && field.IsZero() {
			setText(field, text)
		}
	})
	if logger := v.FieldByName("Logger"); logger.IsValid() && logger.IsNil() {
		logger.Set(reflect.ValueOf(slog.Default()))
	}
}

// Negative returns one error for each option of a struct whose number or duration is negative.
func Negative(config any) []error {
	var errs []error
	v := reflect.ValueOf(config)
	eachOption(v, func(f reflect.StructField, field reflect.Value, name string) {
		if field.CanInt() && field.Int() < 0 {
			errs = append(errs, fmt.Errorf("%s (%s) is negative: %v", f.Name, name, field.Interface()))
		}
	})
	return errs
}

func eachOption(v reflect.Value, do func(f reflect.StructField, field reflect.Value, name string)) {
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("option"); name != "" {
			do(v.Type().Field(i), v.Field(i), name)
		}
	}
}

func kindOf(f reflect.StructField) Kind {
	if kind := f.Tag.Get("kind"); kind != "" {
		return Kind(kind)
	}
	switch {
	case f.Type == reflect.TypeFor[time.Duration]():
		return Duration
	case f.Type.Kind() == reflect.String:
		return Text
	case f.Type.Kind() == reflect.Int:
		return Int
	case f.Type.Kind() == reflect.Bool:
		return Bool
	case f.Type == reflect.TypeFor[[]string]():
		return List
	}
	panic(fmt.Sprintf("broker: field %s cannot be an option: its type is %v", f.Name, f.Type))
}

// setText sets a field to a value that was validated before.
func setText(field reflect.Value, text string) {
	switch {
	case field.Type() == reflect.TypeFor[time.Duration]():
		d, _ := time.ParseDuration(text)
		field.SetInt(int64(d))
	case field.Kind() == reflect.String:
		field.SetString(text)
	case field.Kind() == reflect.Int:
		n, _ := strconv.Atoi(text)
		field.SetInt(int64(n))
	case field.Kind() == reflect.Bool:
		b, _ := strconv.ParseBool(text)
		field.SetBool(b)
	default:
		field.Set(reflect.ValueOf(splitList(text)))
	}
}
