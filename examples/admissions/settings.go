package main

import (
	"cmp"
	"errors"
	"os"
	"strings"
)

// settings are read from the environment.
type settings struct {
	database      string
	queueURL      string
	queuePrefix   string // prefix of queue names, if several installations share a server
	smtpURL       string
	listen        string // address of the service
	url           string // URL by which applicants reach the service
	paydeskListen string
	paydeskURL    string
	paymentSecret string // shared with the payment provider
}

func settingsFromEnvironment() (settings, error) {
	s := settings{
		database:      os.Getenv("DATABASE_URL"),
		queueURL:      cmp.Or(os.Getenv("QUEUE_URL"), "amqp://guest:guest@127.0.0.1:5672/"),
		queuePrefix:   os.Getenv("QUEUE_PREFIX"),
		smtpURL:       cmp.Or(os.Getenv("SMTP_URL"), "smtp://127.0.0.1:2525"),
		listen:        cmp.Or(os.Getenv("ADMISSIONS_LISTEN"), "127.0.0.1:8080"),
		paydeskListen: cmp.Or(os.Getenv("PAYDESK_LISTEN"), "127.0.0.1:8081"),
		paymentSecret: os.Getenv("PAYMENT_SECRET"),
	}
	s.url = strings.TrimRight(cmp.Or(os.Getenv("ADMISSIONS_URL"), "http://"+s.listen), "/")
	s.paydeskURL = strings.TrimRight(cmp.Or(os.Getenv("PAYDESK_URL"), "http://"+s.paydeskListen), "/")
	var missing []error
	if s.database == "" {
		missing = append(missing, errors.New("DATABASE_URL is not set"))
	}
	if s.paymentSecret == "" {
		missing = append(missing, errors.New("PAYMENT_SECRET is not set; one is made by: echo whsec_$(head -c 32 /dev/urandom | base64)"))
	}
	return s, errors.Join(missing...)
}
